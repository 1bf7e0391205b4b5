-- Caller: OperatorStorage::cancel, first.
-- Intent: Pending or Fetched -> JobsDLQ as Cancelled, at once: user code has not run in this attempt.
-- Invariant: one transaction; the DELETE compares the status. The worker that fetched the row finds nothing to mark.
-- Twin: deletes with OUTPUT into a table variable. A row may go from running to waiting between this call and
--   cancel_running: for an id that neither they nor find_cancelled know, the caller looks with find_job, and calls
--   again where it is active.
-- Locks: Hot > DLQ > Buckets > Stats. Waits, in Seq order; the counters by queue.
-- Retry: safe: find_cancelled recognises the rows of an earlier run. 2627 as in archive_succeeded.
-- @ids nvarchar(max), a JSON array
-- @reason nvarchar(max)
-- Answers: Id of the jobs moved; IsLimited: their queue has a MaxWorkers, and maybe room now.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
-- A shard of the counters for each session, so that sessions seldom wait for one another.
DECLARE @shard tinyint = @@SPID % 16;
DECLARE @bucket datetime2(3) = DATEADD(second, DATEDIFF(second, '20000101', @now) / 10 * 10, '20000101');
DECLARE @in TABLE (Id uniqueidentifier NOT NULL PRIMARY KEY);
INSERT INTO @in (Id)
SELECT DISTINCT CONVERT(uniqueidentifier, j.[value])
FROM OPENJSON(@ids) AS j;
DECLARE @found TABLE (Seq bigint NOT NULL PRIMARY KEY);

-- Their places, by the index alone; the guards are compared below.
INSERT /* chokaq:cancel_waiting */ INTO @found (Seq)
SELECT h.Seq
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK) ON h.Id = i.Id
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
DECLARE @moved TABLE (
    Id uniqueidentifier NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Priority int NOT NULL, AttemptCount int NOT NULL, MaxRetries int NOT NULL,
    TimeoutMs bigint NOT NULL, MaxAgeMs bigint NOT NULL, OnCrash tinyint NOT NULL,
    CreatedAtUtc datetime2(3) NOT NULL, ScheduledAtUtc datetime2(3) NOT NULL, DeadlineUtc datetime2(3) NOT NULL,
    StartedAtUtc datetime2(3) NULL,
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

DELETE /* chokaq:cancel_waiting */ h
OUTPUT
    deleted.Id, deleted.Queue, deleted.Type, deleted.Priority, deleted.AttemptCount, deleted.MaxRetries,
    deleted.TimeoutMs, deleted.MaxAgeMs, deleted.OnCrash, deleted.CreatedAtUtc, deleted.ScheduledAtUtc,
    deleted.DeadlineUtc, deleted.StartedAtUtc, deleted.WorkerId, deleted.LeaseId, deleted.IdempotencyKey,
    deleted.CreatedBy, deleted.Tags, deleted.Errors, deleted.Payload
INTO @moved (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors, Payload
)
FROM @found AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.Status IN (0, 1)
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:cancel_waiting */ INTO [chokaq].JobsDLQ (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, FailedAtUtc, Reason, Error, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors,
    Payload
)
SELECT
    m.Id, m.Queue, m.Type, m.Priority, m.AttemptCount, m.MaxRetries, m.TimeoutMs, m.MaxAgeMs, m.OnCrash, m.CreatedAtUtc,
    m.ScheduledAtUtc, m.DeadlineUtc, m.StartedAtUtc, @now, N'Cancelled', @reason, m.WorkerId, m.LeaseId, m.IdempotencyKey,
    m.CreatedBy, m.Tags,
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
    -- The error of this attempt, as it is added to those before it.
    SELECT CONCAT(
        N'{"attempt":', m.AttemptCount, N',"at_ms":', DATEDIFF_BIG(millisecond, '19700101', @now),
        N',"kind":"cancelled","text":"', STRING_ESCAPE(@reason, N'json'), N'"}'
    ) AS Entry
) AS e
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT INTO @sum (Queue, Succeeded, Failed, Retried, DurationMs)
SELECT m.Queue, 0, COUNT(*), 0, 0
FROM @moved AS m
GROUP BY m.Queue;

INSERT /* chokaq:cancel_waiting */ INTO [chokaq].MetricBuckets (BucketUtc, Queue, Shard)
SELECT @bucket, t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE b.BucketUtc = @bucket AND b.Queue = t.Queue AND b.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:cancel_waiting */ b
SET Succeeded = b.Succeeded + t.Succeeded, Failed = b.Failed + t.Failed, DurationMs = b.DurationMs + t.DurationMs
FROM @sum AS t
INNER LOOP JOIN [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK)
    ON b.BucketUtc = @bucket AND b.Queue = t.Queue AND b.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:cancel_waiting */ INTO [chokaq].StatsSummary (Queue, Shard)
SELECT t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE s.Queue = t.Queue AND s.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:cancel_waiting */ s
SET SucceededTotal = s.SucceededTotal + t.Succeeded, FailedTotal = s.FailedTotal + t.Failed,
    RetriedTotal = s.RetriedTotal + t.Retried, LastActivityUtc = @now
FROM @sum AS t
INNER LOOP JOIN [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK)
    ON s.Queue = t.Queue AND s.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

SELECT /* chokaq:cancel_waiting */ m.Id, CASE WHEN q.MaxWorkers IS NULL THEN 0 ELSE 1 END AS IsLimited
FROM @moved AS m
LEFT LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON q.Name = m.Queue
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
