-- Caller: WorkerStorage::finalise, once per call for the successes in it.
-- Intent: Processing -> JobsArchive.
-- Invariant: one transaction: what is inserted is what the DELETE took, and the DELETE compares the whole guard, so a
--   worker that lost its lease moves nothing.
-- Twin: deletes with OUTPUT into a table variable and inserts from it; takes each row with its own lease and output.
-- Locks: Hot > Archive > Buckets > Stats. Waits, in Seq order; the counters by queue.
-- Retry: safe: rows that an earlier run moved are not matched again, and find_finished recognises them by LeaseId.
--   2627 and 2601 (a first row of a counter, inserted by two at once) roll everything back: run it again.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId, "o": output or null, "n": why there is none or null}]
-- Answers: Id of the jobs moved; IsLimited: their queue has a MaxWorkers, and room now.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
-- A shard of the counters for each session, so that sessions seldom wait for one another.
DECLARE @shard tinyint = @@SPID % 16;
DECLARE @bucket datetime2(3) = DATEADD(second, DATEDIFF(second, '20000101', @now) / 10 * 10, '20000101');
DECLARE @in TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    LeaseId uniqueidentifier NOT NULL,
    [Output] nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    OutputNote nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL
);
INSERT INTO @in (Seq, LeaseId, [Output], OutputNote)
SELECT j.Seq, j.LeaseId, j.[Output], j.OutputNote
FROM OPENJSON(@items) WITH (
    Seq bigint '$.s',
    LeaseId uniqueidentifier '$.l',
    [Output] nvarchar(max) '$.o',
    OutputNote nvarchar(max) '$.n'
) AS j;
DECLARE @moved TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    Id uniqueidentifier NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Priority int NOT NULL, AttemptCount int NOT NULL, MaxRetries int NOT NULL,
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

DELETE /* chokaq:archive_succeeded */ h
OUTPUT
    deleted.Seq, deleted.Id, deleted.Queue, deleted.Type, deleted.Priority, deleted.AttemptCount, deleted.MaxRetries,
    deleted.CreatedAtUtc, deleted.ScheduledAtUtc, deleted.DeadlineUtc, deleted.StartedAtUtc,
    deleted.WorkerId, deleted.LeaseId, deleted.IdempotencyKey, deleted.CreatedBy, deleted.Tags, deleted.Errors,
    deleted.Payload
INTO @moved (
    Seq, Id, Queue, Type, Priority, AttemptCount, MaxRetries, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, StartedAtUtc,
    WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors, Payload
)
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:archive_succeeded */ INTO [chokaq].JobsArchive (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, StartedAtUtc,
    FinishedAtUtc, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors, [Output], OutputNote, Payload
)
SELECT
    m.Id, m.Queue, m.Type, m.Priority, m.AttemptCount, m.MaxRetries, m.CreatedAtUtc, m.ScheduledAtUtc, m.DeadlineUtc,
    COALESCE(m.StartedAtUtc, @now), @now, m.WorkerId, m.LeaseId, m.IdempotencyKey, m.CreatedBy, m.Tags, m.Errors, i.[Output],
    i.OutputNote, m.Payload
FROM @moved AS m
INNER LOOP JOIN @in AS i ON i.Seq = m.Seq
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT INTO @sum (Queue, Succeeded, Failed, Retried, DurationMs)
SELECT
    m.Queue, COUNT(*), 0, 0,
    SUM(CASE WHEN m.StartedAtUtc < @now THEN DATEDIFF_BIG(millisecond, m.StartedAtUtc, @now) ELSE 0 END)
FROM @moved AS m
GROUP BY m.Queue;

INSERT /* chokaq:archive_succeeded */ INTO [chokaq].MetricBuckets (BucketUtc, Queue, Shard)
SELECT @bucket, t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE b.BucketUtc = @bucket AND b.Queue = t.Queue AND b.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:archive_succeeded */ b
SET Succeeded = b.Succeeded + t.Succeeded, Failed = b.Failed + t.Failed, DurationMs = b.DurationMs + t.DurationMs
FROM @sum AS t
INNER LOOP JOIN [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK)
    ON b.BucketUtc = @bucket AND b.Queue = t.Queue AND b.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:archive_succeeded */ INTO [chokaq].StatsSummary (Queue, Shard)
SELECT t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE s.Queue = t.Queue AND s.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:archive_succeeded */ s
SET SucceededTotal = s.SucceededTotal + t.Succeeded, FailedTotal = s.FailedTotal + t.Failed,
    RetriedTotal = s.RetriedTotal + t.Retried, LastActivityUtc = @now
FROM @sum AS t
INNER LOOP JOIN [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK)
    ON s.Queue = t.Queue AND s.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

SELECT /* chokaq:archive_succeeded */ m.Id, CASE WHEN q.MaxWorkers IS NULL THEN 0 ELSE 1 END AS IsLimited
FROM @moved AS m
LEFT LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON q.Name = m.Queue
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
