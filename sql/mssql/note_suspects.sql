-- Caller: WorkerStorage::archive_zombies, last.
-- Intent: the first strike: running rows whose heartbeat is older than their queue's limit (or the lease) are noted,
--   at most 1,000 a scan. An outage as long as the lease must not make zombies of every running job at the first scan
--   after it.
-- Invariant: only Processing rows with the heartbeat that the candidate had, and no noted one is noted again: its
--   time counts from the first strike.
-- Twin: goes by IX_JobsHot_ProcessingHeartbeat under the smallest limit, and skips locked rows.
-- Locks: Hot. READPAST.
-- Retry: safe.
-- @lease_ms bigint
-- Answers: Noted, a count.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
SET DEADLOCK_PRIORITY LOW;
DECLARE @smallest bigint = ISNULL((SELECT MIN(q.ZombieTimeoutMs) FROM [chokaq].Queues AS q), @lease_ms);
IF @lease_ms < @smallest
    SET @smallest = @lease_ms;
DECLARE @before datetime2(3) = DATEADD(millisecond, -CONVERT(int, @smallest % 86400000), DATEADD(day, -CONVERT(int, @smallest / 86400000), @now));
DECLARE @found TABLE (Seq bigint NOT NULL PRIMARY KEY, HeartbeatUtc datetime2(3) NOT NULL);

-- Candidates, by the index alone: no row is locked before the guards have been compared.
INSERT /* chokaq:note_suspects */ INTO @found (Seq, HeartbeatUtc)
SELECT TOP (1000) h.Seq, h.HeartbeatUtc
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_ProcessingHeartbeat), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
LEFT LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK) ON q.Name = h.Queue
WHERE h.Status = 2 AND h.HeartbeatUtc < @before
    AND h.HeartbeatUtc < DATEADD(
        millisecond, -CONVERT(int, COALESCE(q.ZombieTimeoutMs, @lease_ms) % 86400000),
        DATEADD(day, -CONVERT(int, COALESCE(q.ZombieTimeoutMs, @lease_ms) / 86400000), @now)
    )
    AND h.SuspectUtc IS NULL
ORDER BY h.HeartbeatUtc
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:note_suspects */ h
SET SuspectUtc = @now
FROM @found AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON h.Seq = i.Seq
WHERE h.Status = 2 AND h.SuspectUtc IS NULL AND h.HeartbeatUtc = i.HeartbeatUtc
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT @@ROWCOUNT AS Noted;
