-- Caller: WorkerStorage::mark_as_processing, once per call: the leases that wait together, as JSON.
-- Intent: Fetched -> Processing, the attempt counted: the last guard before user code.
-- Invariant: a row that was released, recovered, cancelled or claimed again is not this lease's any more, does not
--   change, and its user code does not run.
-- Twin: takes (Seq, lease) pairs, so that several fetches of one worker go together.
-- Locks: Hot. Waits, in Seq order.
-- Retry: safe: rows of this lease that are Processing already are answered by find_marked.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId}]
-- Answers: Seq, AttemptCount, StartedAtMs of the rows that changed.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    LeaseId uniqueidentifier NOT NULL
);
INSERT INTO @in (Seq, LeaseId)
SELECT j.Seq, j.LeaseId
FROM OPENJSON(@items) WITH (
    Seq bigint '$.s',
    LeaseId uniqueidentifier '$.l'
) AS j;
DECLARE @out TABLE (Seq bigint NOT NULL PRIMARY KEY, AttemptCount int NOT NULL);

UPDATE /* chokaq:mark_as_processing */ h
SET Status = 2, AttemptCount = h.AttemptCount + 1, StartedAtUtc = @now, HeartbeatUtc = @now, SuspectUtc = NULL,
    UnknownSinceUtc = NULL, Progress = NULL, ProgressNote = NULL
OUTPUT inserted.Seq, inserted.AttemptCount INTO @out (Seq, AttemptCount)
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 1
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT o.Seq, o.AttemptCount, DATEDIFF_BIG(millisecond, '19700101', @now) AS StartedAtMs
FROM @out AS o;
