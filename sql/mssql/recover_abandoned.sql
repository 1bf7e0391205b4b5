-- Caller: WorkerStorage::recover_abandoned, from rescue.
-- Intent: rows that were fetched and not started for longer than the limit go back to Pending: their worker died with
--   them in its buffer. User code has not run, no attempt was used.
-- Invariant: only Fetched rows, of the age that was asked. The LeaseId is cleared: the old holder can neither start
--   the row nor believe that it gave it back itself.
-- Twin: goes by IX_JobsHot_FetchedRecovery, and skips locked rows.
-- Locks: Hot. READPAST; the update waits for nothing, its rows are locked.
-- Retry: safe.
-- @limit_ms bigint
-- @batch int
-- Answers: Recovered, a count.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
SET DEADLOCK_PRIORITY LOW;
DECLARE @before datetime2(3) = DATEADD(millisecond, -(@limit_ms % 1000), DATEADD(second, -CONVERT(int, @limit_ms / 1000), @now));
DECLARE @found TABLE (Seq bigint NOT NULL PRIMARY KEY, AttemptCount int NOT NULL);
DECLARE @recovered int;

BEGIN TRANSACTION;

-- AttemptCount stands in no index: with it, the row itself is locked here too, or skipped.
INSERT /* chokaq:recover_abandoned */ INTO @found (Seq, AttemptCount)
SELECT TOP (@batch) h.Seq, h.AttemptCount
FROM [chokaq].JobsHot AS h
    WITH (INDEX(IX_JobsHot_FetchedRecovery), FORCESEEK, UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
WHERE h.Status = 1 AND h.FetchedAtUtc <= @before
ORDER BY h.FetchedAtUtc
OPTION (MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:recover_abandoned */ h
SET Status = 0, IsReady = 1, WorkerId = NULL, LeaseId = NULL, FetchedAtUtc = NULL
FROM @found AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.Status = 1
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
SET @recovered = @@ROWCOUNT;

COMMIT TRANSACTION;

SELECT @recovered AS Recovered;
