-- Caller: WorkerStorage::archive_zombies, first.
-- Intent: Processing -> Pending at once, the attempt counted: the second strike for jobs whose type said that they
--   may run again after a crash.
-- Invariant: only rows that are still Processing and suspect for long enough, with the heartbeat that the candidate
--   had: one that beat again stays. The LeaseId is cleared: whatever the old holder says of this attempt is a lost
--   lease.
-- Twin: finds its rows itself, and READPAST.
-- Locks: Hot > Stats. READPAST; the counters by queue.
-- Retry: safe. 2627 as in archive_succeeded.
-- @lease_ms bigint
-- @suspicion_ms bigint
-- @batch int
-- Answers: Id, Queue, Type, WorkerId of the rows put back.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
-- A shard of the counters for each session, so that sessions seldom wait for one another.
DECLARE @shard tinyint = @@SPID % 16;
SET DEADLOCK_PRIORITY LOW;
DECLARE @suspected_before datetime2(3) = DATEADD(millisecond, -(@suspicion_ms % 1000), DATEADD(second, -CONVERT(int, @suspicion_ms / 1000), @now));
DECLARE @smallest bigint = ISNULL((SELECT MIN(q.ZombieTimeoutMs) FROM [chokaq].Queues AS q), @lease_ms);
IF @lease_ms < @smallest
    SET @smallest = @lease_ms;
DECLARE @before datetime2(3) = DATEADD(millisecond, -CONVERT(int, @smallest % 86400000), DATEADD(day, -CONVERT(int, @smallest / 86400000), @now));
DECLARE @found TABLE (Seq bigint NOT NULL PRIMARY KEY, HeartbeatUtc datetime2(3) NOT NULL);

-- Candidates, by the index alone: no row is locked before the guards have been compared.
INSERT /* chokaq:retry_zombies */ INTO @found (Seq, HeartbeatUtc)
SELECT TOP (1000) h.Seq, h.HeartbeatUtc
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_ProcessingHeartbeat), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
LEFT LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK) ON q.Name = h.Queue
WHERE h.Status = 2 AND h.HeartbeatUtc < @before
    AND h.HeartbeatUtc < DATEADD(
        millisecond, -CONVERT(int, COALESCE(q.ZombieTimeoutMs, @lease_ms) % 86400000),
        DATEADD(day, -CONVERT(int, COALESCE(q.ZombieTimeoutMs, @lease_ms) / 86400000), @now)
    )
    AND h.SuspectUtc <= @suspected_before
ORDER BY h.HeartbeatUtc
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
DECLARE @out TABLE (
    Id uniqueidentifier NOT NULL, Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL, Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL, WorkerId nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL
);
DECLARE @sum TABLE (
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY,
    Succeeded int NOT NULL, Failed int NOT NULL, Retried int NOT NULL, DurationMs bigint NOT NULL
);

BEGIN TRANSACTION;

UPDATE /* chokaq:retry_zombies */ TOP (@batch) h
SET Status = 0, IsReady = 1, WorkerId = NULL, LeaseId = NULL, FetchedAtUtc = NULL, StartedAtUtc = NULL,
    HeartbeatUtc = NULL, SuspectUtc = NULL, Progress = NULL, ProgressNote = NULL, ScheduledAtUtc = @now,
    Errors = (
        SELECT CASE
            WHEN k.Kept IS NULL THEN CONCAT(N'[', e.Entry, N']')
            ELSE CONCAT(LEFT(k.Kept, LEN(k.Kept) - 1), N',', e.Entry, N']')
        END
        FROM (
            -- Errors that are no JSON array of objects any more are begun anew: they strand no job.
            SELECT CASE WHEN ISJSON(h.Errors) = 1 AND LEFT(h.Errors, 2) = N'[{' THEN h.Errors END AS Valid
        ) AS v
        CROSS APPLY (
            -- The newest 25 are kept: the first goes when one is added to 25.
            SELECT CASE
                WHEN JSON_QUERY(v.Valid, N'$[24]') IS NULL THEN v.Valid
                ELSE STUFF(v.Valid, 1, LEN(JSON_QUERY(v.Valid, N'$[0]')) + 2, N'[')
            END AS Kept
        ) AS k
        CROSS APPLY (
            SELECT CONCAT(
                N'{"attempt":', h.AttemptCount, N',"at_ms":', DATEDIFF_BIG(millisecond, '19700101', @now), N',"kind":"', N'zombie', N'","text":"',
                STRING_ESCAPE(CONCAT(N'no heartbeat for ', DATEDIFF_BIG(second, h.HeartbeatUtc, @now), N' s: the worker ', h.WorkerId, N' died, froze or lost the database'), N'json'), N'"}'
            ) AS Entry
        ) AS e
    )
OUTPUT inserted.Id, inserted.Queue, inserted.Type, deleted.WorkerId INTO @out (Id, Queue, Type, WorkerId)
FROM @found AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON h.Seq = i.Seq
WHERE h.Status = 2 AND h.SuspectUtc <= @suspected_before AND h.HeartbeatUtc = i.HeartbeatUtc
    AND h.OnCrash = 1 AND h.AttemptCount <= h.MaxRetries AND @now <= h.DeadlineUtc AND h.CancelRequestedUtc IS NULL
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT INTO @sum (Queue, Succeeded, Failed, Retried, DurationMs)
SELECT o.Queue, 0, 0, COUNT(*), 0
FROM @out AS o
GROUP BY o.Queue;

INSERT /* chokaq:retry_zombies */ INTO [chokaq].StatsSummary (Queue, Shard)
SELECT t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE s.Queue = t.Queue AND s.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:retry_zombies */ s
SET SucceededTotal = s.SucceededTotal + t.Succeeded, FailedTotal = s.FailedTotal + t.Failed,
    RetriedTotal = s.RetriedTotal + t.Retried, LastActivityUtc = @now
FROM @sum AS t
INNER LOOP JOIN [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK)
    ON s.Queue = t.Queue AND s.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

SELECT o.Id, o.Queue, o.Type, o.WorkerId
FROM @out AS o;
