-- Caller: WorkerStorage::next_due, when a worker asks whether it may stop.
-- Intent: when the first row of the served queues that may be fetched is due: 0 for now, NULL when none is within the
--   horizon.
-- Invariant: none to protect, it reads. A queue that is paused, inactive or full does not count. The walk over the
--   delayed rows stops after 10,000, by the index alone: then the time of the last one is the answer, and the caller
--   asks again when it has come.
-- Twin: one call; the heads and the delayed rows are read together.
-- Locks: none kept: Queues, then Hot, READPAST; the count waits for one row at a time.
-- Retry: safe, it reads.
-- @queues nvarchar(max), a JSON array of names; NULL for all
-- @horizon_s int
-- @horizon_ms int
-- Answers: DueMs from now.
SET NOCOUNT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @until datetime2(3) = DATEADD(millisecond, @horizon_ms, DATEADD(second, @horizon_s, @now));
DECLARE @served TABLE (Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
INSERT INTO @served (Name)
SELECT DISTINCT CONVERT(nvarchar(255), j.[value]) COLLATE Latin1_General_100_BIN2
FROM OPENJSON(@queues) AS j
WHERE @queues IS NOT NULL;
IF @queues IS NULL
    INSERT INTO @served (Name)
    SELECT q.Name
    FROM [chokaq].Queues AS q WITH (READCOMMITTEDLOCK);
DECLARE @open TABLE (Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
DECLARE @due TABLE (Ord int IDENTITY(1, 1) NOT NULL PRIMARY KEY, Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL, DueUtc datetime2(3) NOT NULL);

INSERT /* chokaq:next_due */ INTO @open (Name)
SELECT q.Name
FROM @served AS s
INNER LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK) ON q.Name = s.Name
WHERE q.IsPaused = 0 AND q.IsActive = 1
    AND (q.MaxWorkers IS NULL OR q.MaxWorkers > (
        SELECT COUNT(*)
        FROM [chokaq].JobsHot AS a WITH (INDEX(IX_JobsHot_QueueStats), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE a.Queue = q.Name AND a.Status > 0
    ))
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

DECLARE @is_ready bit = 0;
SELECT /* chokaq:next_due */ TOP (1) @is_ready = 1
FROM @open AS q
CROSS APPLY (
    SELECT TOP (1) f.Priority, f.ScheduledAtUtc
    FROM [chokaq].JobsHot AS f WITH (INDEX(IX_JobsHot_Fetch), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE f.Queue = q.Name AND f.Status = 0 AND f.IsReady = 1
    ORDER BY f.Priority DESC, f.ScheduledAtUtc, f.Seq
) AS e
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

IF @is_ready = 1
    SELECT CONVERT(bigint, 0) AS DueMs;
ELSE
BEGIN
    INSERT /* chokaq:next_due */ INTO @due (Queue, DueUtc)
    SELECT TOP (10000) h.Queue, h.ScheduledAtUtc
    FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Delayed), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE h.Status = 0 AND h.IsReady = 0 AND h.ScheduledAtUtc <= @until
    ORDER BY h.ScheduledAtUtc
    OPTION (MAXDOP 1, KEEPFIXED PLAN);

    SELECT CASE WHEN MIN(d.DueUtc) < @now THEN CONVERT(bigint, 0) ELSE DATEDIFF_BIG(millisecond, @now, MIN(d.DueUtc)) END AS DueMs
    FROM @due AS d
    WHERE d.Ord = 10000 OR EXISTS (SELECT 1 FROM @open AS q WHERE q.Name = d.Queue);
END
