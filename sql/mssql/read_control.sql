-- Caller: WorkerStorage::read_control, once a second per worker where no fetch brings it.
-- Intent: the queues that may not be fetched or started now or have a lease of their own, and the running jobs of this
--   worker that an operator wants cancelled.
-- Invariant: none to protect, it reads. Queues are few; the index of cancels holds the requests that are not
--   delivered yet.
-- Twin: has an index for the requests; the active rows are not walked.
-- Locks: none kept: Queues, then Hot. READPAST: a queue that is just being changed, or made, is read the next time.
-- Retry: safe, it reads.
-- @queues nvarchar(max), a JSON array of names; NULL for all
-- @worker nvarchar(255)
-- Answers: 1: Name, IsStopped, ZombieTimeoutMs of the queues where one is set. 2: Id of the jobs to cancel.
SET NOCOUNT ON;
DECLARE @served TABLE (Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
INSERT INTO @served (Name)
SELECT DISTINCT CONVERT(nvarchar(255), j.[value]) COLLATE Latin1_General_100_BIN2
FROM OPENJSON(@queues) AS j
WHERE @queues IS NOT NULL;
IF @queues IS NULL
    INSERT INTO @served (Name)
    SELECT q.Name
    FROM [chokaq].Queues AS q WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK);

SELECT /* chokaq:read_control */
    q.Name, CASE WHEN q.IsPaused = 1 OR q.IsActive = 0 THEN 1 ELSE 0 END AS IsStopped, q.ZombieTimeoutMs
FROM @served AS s
INNER LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON q.Name = s.Name
WHERE (q.IsPaused = 1 OR q.IsActive = 0 OR q.ZombieTimeoutMs IS NOT NULL)
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT /* chokaq:read_control */ h.Id
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_CancelRequested), FORCESEEK)
WHERE h.WorkerId = @worker AND h.CancelRequestedUtc IS NOT NULL AND h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
