-- Caller: WorkerStorage::archive_zombies, after retry_zombies.
-- Intent: Processing -> JobsDLQ: user code may have had effects, a person decides. The reason is Zombie, or Cancelled
--   where an operator had asked for that (the error still says that the worker died).
-- Invariant: one transaction. The DELETE compares the status, the suspicion and the heartbeat that the candidate had:
--   one that beat again stays. The LeaseId goes with it: a late worker finds it with another reason. What may run
--   again is left to retry_zombies.
-- Twin: finds its rows itself, READPAST, and deletes with OUTPUT into a table variable.
-- Locks: Hot > DLQ > Buckets > Stats. READPAST; the counters by queue.
-- Retry: safe. 2627 as in archive_succeeded.
-- @lease_ms bigint
-- @suspicion_ms bigint
-- @batch int
-- Answers: Id, Queue, Type, WorkerId, Reason of the rows moved; IsLimited: their queue has a MaxWorkers, and room now.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
-- A shard of the counters for each session, so that sessions seldom wait for one another.
DECLARE @shard tinyint = @@SPID % 16;
SET DEADLOCK_PRIORITY LOW;
DECLARE @bucket datetime2(3) = DATEADD(second, DATEDIFF(second, '20000101', @now) / 10 * 10, '20000101');
DECLARE @suspected_before datetime2(3) = DATEADD(millisecond, -(@suspicion_ms % 1000), DATEADD(second, -CONVERT(int, @suspicion_ms / 1000), @now));
DECLARE @smallest bigint = ISNULL((SELECT MIN(q.ZombieTimeoutMs) FROM [chokaq].Queues AS q), @lease_ms);
IF @lease_ms < @smallest
    SET @smallest = @lease_ms;
DECLARE @before datetime2(3) = DATEADD(millisecond, -CONVERT(int, @smallest % 86400000), DATEADD(day, -CONVERT(int, @smallest / 86400000), @now));
DECLARE @found TABLE (Seq bigint NOT NULL PRIMARY KEY, HeartbeatUtc datetime2(3) NOT NULL);

-- Candidates, by the index alone: no row is locked before the guards have been compared.
INSERT /* chokaq:archive_zombies */ INTO @found (Seq, HeartbeatUtc)
SELECT TOP (@batch) h.Seq, h.HeartbeatUtc
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
DECLARE @moved TABLE (
    Id uniqueidentifier NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Priority int NOT NULL, AttemptCount int NOT NULL, MaxRetries int NOT NULL,
    TimeoutMs bigint NOT NULL, MaxAgeMs bigint NOT NULL, OnCrash tinyint NOT NULL,
    CreatedAtUtc datetime2(3) NOT NULL, ScheduledAtUtc datetime2(3) NOT NULL, DeadlineUtc datetime2(3) NOT NULL,
    StartedAtUtc datetime2(3) NULL,
    HeartbeatUtc datetime2(3) NULL,
    CancelRequestedUtc datetime2(3) NULL,
    WorkerId nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    LeaseId uniqueidentifier NULL,
    IdempotencyKey nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    CreatedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    Tags nvarchar(1000) COLLATE Latin1_General_100_BIN2 NULL,
    Errors nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    Payload nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
);
DECLARE @sum TABLE (
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY,
    Succeeded int NOT NULL, Failed int NOT NULL, Retried int NOT NULL, DurationMs bigint NOT NULL
);

BEGIN TRANSACTION;

DELETE /* chokaq:archive_zombies */ h
OUTPUT
    deleted.Id, deleted.Queue, deleted.Type, deleted.Priority, deleted.AttemptCount, deleted.MaxRetries,
    deleted.TimeoutMs, deleted.MaxAgeMs, deleted.OnCrash, deleted.CreatedAtUtc, deleted.ScheduledAtUtc,
    deleted.DeadlineUtc, deleted.StartedAtUtc, deleted.HeartbeatUtc, deleted.CancelRequestedUtc, deleted.WorkerId,
    deleted.LeaseId, deleted.IdempotencyKey, deleted.CreatedBy, deleted.Tags, deleted.Errors, deleted.Payload
INTO @moved (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, HeartbeatUtc, CancelRequestedUtc, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags,
    Errors, Payload
)
FROM @found AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON h.Seq = i.Seq
WHERE h.Status = 2 AND h.SuspectUtc <= @suspected_before AND h.HeartbeatUtc = i.HeartbeatUtc
    AND NOT (h.OnCrash = 1 AND h.AttemptCount <= h.MaxRetries AND @now <= h.DeadlineUtc AND h.CancelRequestedUtc IS NULL)
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:archive_zombies */ INTO [chokaq].JobsDLQ (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, FailedAtUtc, Reason, Error, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors,
    Payload
)
SELECT
    m.Id, m.Queue, m.Type, m.Priority, m.AttemptCount, m.MaxRetries, m.TimeoutMs, m.MaxAgeMs, m.OnCrash, m.CreatedAtUtc,
    m.ScheduledAtUtc, m.DeadlineUtc, m.StartedAtUtc, @now,
    CASE WHEN m.CancelRequestedUtc IS NULL THEN N'Zombie' ELSE N'Cancelled' END, t.ErrorText, m.WorkerId, m.LeaseId,
    m.IdempotencyKey, m.CreatedBy, m.Tags,
    CASE
        WHEN k.Kept IS NULL THEN CONCAT(N'[', e.Entry, N']')
        ELSE CONCAT(LEFT(k.Kept, LEN(k.Kept) - 1), N',', e.Entry, N']')
    END,
    m.Payload
FROM @moved AS m
CROSS APPLY (
    -- Errors that are no JSON array of objects any more are begun anew: they strand no job.
    SELECT CASE WHEN ISJSON(m.Errors) = 1 AND LEFT(m.Errors, 2) = N'[{' THEN m.Errors END AS Valid
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
        N'no heartbeat for ', DATEDIFF_BIG(second, m.HeartbeatUtc, @now), N' s: the worker ', m.WorkerId,
        N' died, froze or lost the database'
    ) AS ErrorText
) AS t
CROSS APPLY (
    -- The error of this attempt, as it is added to those before it.
    SELECT CONCAT(
        N'{"attempt":', m.AttemptCount, N',"at_ms":', DATEDIFF_BIG(millisecond, '19700101', @now),
        N',"kind":"zombie","text":"', STRING_ESCAPE(t.ErrorText, N'json'), N'"}'
    ) AS Entry
) AS e
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT INTO @sum (Queue, Succeeded, Failed, Retried, DurationMs)
SELECT m.Queue, 0, COUNT(*), 0, 0
FROM @moved AS m
GROUP BY m.Queue;

INSERT /* chokaq:archive_zombies */ INTO [chokaq].MetricBuckets (BucketUtc, Queue, Shard)
SELECT @bucket, t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE b.BucketUtc = @bucket AND b.Queue = t.Queue AND b.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:archive_zombies */ b
SET Succeeded = b.Succeeded + t.Succeeded, Failed = b.Failed + t.Failed, DurationMs = b.DurationMs + t.DurationMs
FROM @sum AS t
INNER LOOP JOIN [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK)
    ON b.BucketUtc = @bucket AND b.Queue = t.Queue AND b.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:archive_zombies */ INTO [chokaq].StatsSummary (Queue, Shard)
SELECT t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE s.Queue = t.Queue AND s.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:archive_zombies */ s
SET SucceededTotal = s.SucceededTotal + t.Succeeded, FailedTotal = s.FailedTotal + t.Failed,
    RetriedTotal = s.RetriedTotal + t.Retried, LastActivityUtc = @now
FROM @sum AS t
INNER LOOP JOIN [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK)
    ON s.Queue = t.Queue AND s.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

SELECT /* chokaq:archive_zombies */
    m.Id, m.Queue, m.Type, m.WorkerId,
    CASE WHEN m.CancelRequestedUtc IS NULL THEN N'Zombie' ELSE N'Cancelled' END AS Reason, CASE WHEN q.MaxWorkers IS NULL THEN 0 ELSE 1 END AS IsLimited
FROM @moved AS m
LEFT LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON q.Name = m.Queue
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
