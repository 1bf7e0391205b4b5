-- Caller: WorkerStorage::finalise, once per call for the failures in it; and for the retries and snoozes that their
--   statement refused (then the reason is null and the row says why: an operator's cancel, or the deadline).
-- Intent: Processing -> JobsDLQ, with the attempt's error added to those before it (the newest 25 are kept).
-- Invariant: one transaction: what is inserted is what the DELETE took, and the DELETE compares the whole guard.
--   Errors that are no JSON any more are begun anew: they strand no job.
-- Twin: deletes with OUTPUT into a table variable and inserts from it; the refused ones come in a call, and so a
--   transaction, of their own.
-- Locks: Hot > DLQ > Buckets > Stats. Waits, in Seq order; the counters by queue.
-- Retry: safe: rows that an earlier run moved are not matched again, and find_finished recognises them by LeaseId.
--   2627 and 2601 (a first row of a counter, inserted by two at once) roll everything back: run it again.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId, "r": reason or null, "a": attempt or null, "k": kind, "t": text}]
-- Answers: Id, IsLimited (their queue has a MaxWorkers, and room now), Reason of the jobs moved.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
-- A shard of the counters for each session, so that sessions seldom wait for one another.
DECLARE @shard tinyint = @@SPID % 16;
DECLARE @bucket datetime2(3) = DATEADD(second, DATEDIFF(second, '20000101', @now) / 10 * 10, '20000101');
DECLARE @in TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    LeaseId uniqueidentifier NOT NULL,
    Reason nvarchar(32) COLLATE Latin1_General_100_BIN2 NULL,
    ErrorAttempt int NULL,
    ErrorKind nvarchar(32) COLLATE Latin1_General_100_BIN2 NULL,
    ErrorText nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL
);
INSERT INTO @in (Seq, LeaseId, Reason, ErrorAttempt, ErrorKind, ErrorText)
SELECT j.Seq, j.LeaseId, j.Reason, j.ErrorAttempt, j.ErrorKind, j.ErrorText
FROM OPENJSON(@items) WITH (
    Seq bigint '$.s',
    LeaseId uniqueidentifier '$.l',
    Reason nvarchar(32) '$.r',
    ErrorAttempt int '$.a',
    ErrorKind nvarchar(32) '$.k',
    ErrorText nvarchar(max) '$.t'
) AS j;
DECLARE @moved TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    Id uniqueidentifier NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Priority int NOT NULL, AttemptCount int NOT NULL, MaxRetries int NOT NULL,
    TimeoutMs bigint NOT NULL, MaxAgeMs bigint NOT NULL, OnCrash tinyint NOT NULL,
    CreatedAtUtc datetime2(3) NOT NULL, ScheduledAtUtc datetime2(3) NOT NULL, DeadlineUtc datetime2(3) NOT NULL,
    StartedAtUtc datetime2(3) NULL,
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

DELETE /* chokaq:move_to_dlq */ h
OUTPUT
    deleted.Seq, deleted.Id, deleted.Queue, deleted.Type, deleted.Priority, deleted.AttemptCount, deleted.MaxRetries,
    deleted.TimeoutMs, deleted.MaxAgeMs, deleted.OnCrash, deleted.CreatedAtUtc, deleted.ScheduledAtUtc,
    deleted.DeadlineUtc, deleted.StartedAtUtc, deleted.CancelRequestedUtc,
    deleted.WorkerId, deleted.LeaseId, deleted.IdempotencyKey, deleted.CreatedBy, deleted.Tags, deleted.Errors,
    deleted.Payload
INTO @moved (
    Seq, Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, CancelRequestedUtc, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors, Payload
)
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:move_to_dlq */ INTO [chokaq].JobsDLQ (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, FailedAtUtc, Reason, Error, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors,
    Payload
)
SELECT
    m.Id, m.Queue, m.Type, m.Priority, m.AttemptCount, m.MaxRetries, m.TimeoutMs, m.MaxAgeMs, m.OnCrash, m.CreatedAtUtc,
    m.ScheduledAtUtc, m.DeadlineUtc, m.StartedAtUtc, @now,
    COALESCE(i.Reason, CASE WHEN m.CancelRequestedUtc IS NULL THEN N'RetryLifetimeExpired' ELSE N'Cancelled' END), i.ErrorText,
    m.WorkerId, m.LeaseId, m.IdempotencyKey, m.CreatedBy, m.Tags,
    CASE
        WHEN k.Kept IS NULL THEN CONCAT(N'[', e.Entry, N']')
        ELSE CONCAT(LEFT(k.Kept, LEN(k.Kept) - 1), N',', e.Entry, N']')
    END,
    m.Payload
FROM @moved AS m
INNER LOOP JOIN @in AS i ON i.Seq = m.Seq
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
        N'{"attempt":', COALESCE(i.ErrorAttempt, m.AttemptCount), N',"at_ms":', DATEDIFF_BIG(millisecond, '19700101', @now), N',"kind":"', i.ErrorKind, N'","text":"',
        STRING_ESCAPE(i.ErrorText, N'json'), N'"}'
    ) AS Entry
) AS e
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT INTO @sum (Queue, Succeeded, Failed, Retried, DurationMs)
SELECT m.Queue, 0, COUNT(*), 0, 0
FROM @moved AS m
GROUP BY m.Queue;

INSERT /* chokaq:move_to_dlq */ INTO [chokaq].MetricBuckets (BucketUtc, Queue, Shard)
SELECT @bucket, t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE b.BucketUtc = @bucket AND b.Queue = t.Queue AND b.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:move_to_dlq */ b
SET Succeeded = b.Succeeded + t.Succeeded, Failed = b.Failed + t.Failed, DurationMs = b.DurationMs + t.DurationMs
FROM @sum AS t
INNER LOOP JOIN [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK)
    ON b.BucketUtc = @bucket AND b.Queue = t.Queue AND b.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:move_to_dlq */ INTO [chokaq].StatsSummary (Queue, Shard)
SELECT t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE s.Queue = t.Queue AND s.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:move_to_dlq */ s
SET SucceededTotal = s.SucceededTotal + t.Succeeded, FailedTotal = s.FailedTotal + t.Failed,
    RetriedTotal = s.RetriedTotal + t.Retried, LastActivityUtc = @now
FROM @sum AS t
INNER LOOP JOIN [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK)
    ON s.Queue = t.Queue AND s.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

SELECT /* chokaq:move_to_dlq */
    m.Id, CASE WHEN q.MaxWorkers IS NULL THEN 0 ELSE 1 END AS IsLimited,
    COALESCE(i.Reason, CASE WHEN m.CancelRequestedUtc IS NULL THEN N'RetryLifetimeExpired' ELSE N'Cancelled' END) AS Reason
FROM @moved AS m
INNER LOOP JOIN @in AS i ON i.Seq = m.Seq
LEFT LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON q.Name = m.Queue
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
