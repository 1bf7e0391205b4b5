-- Caller: OperatorStorage::resurrect, once per call.
-- Intent: JobsDLQ -> Pending: attempts 0, a fresh lifetime, at the end of its queue; id, key, errors and whatever is
--   not edited stay.
-- Invariant: one transaction: what is inserted is what the DELETE took. An active key is held once: keys that an
--   active job holds, or that come twice in the call, are filtered first (the first of the call wins). No total
--   changes: what failed has failed.
-- Twin: set-based; a repeated call recognises its first run in the same answer (a job that waits with no attempt but
--   with errors can only have come from a resurrect).
-- Locks: DLQ > Hot. The named exception to the order: DLQ rows are locked by id, one call at a time keeps few of
--   them. Whoever holds a row of JobsHot only adds rows to JobsDLQ, but for enqueue, which looks for its own id there:
--   that deadlock (1205) is repeated by both.
-- Retry: safe, also after 2601 and 2627 (an enqueue took the key meanwhile).
-- @ids nvarchar(max), a JSON array in the order of the call
-- @queue nvarchar(255), NULL keeps
-- @priority int, NULL keeps
-- @payload nvarchar(max), NULL keeps
-- @edits_tags bit
-- @tags nvarchar(1000)
-- Answers: Id, IsResurrected, IsDead, HolderId (an active job that has the key) for each id; dead with no holder: a
--   key of the same call took it, run again.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (Id uniqueidentifier NOT NULL PRIMARY KEY, Ord int NOT NULL);
INSERT INTO @in (Id, Ord)
SELECT CONVERT(uniqueidentifier, j.[value]), MIN(CONVERT(int, j.[key]))
FROM OPENJSON(@ids) AS j
GROUP BY CONVERT(uniqueidentifier, j.[value]);
DECLARE @dead TABLE (
    Ord int NOT NULL PRIMARY KEY, Id uniqueidentifier NOT NULL UNIQUE, FailedAtUtc datetime2(3) NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL, IdempotencyKey nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL
);
DECLARE @moved TABLE (
    Id uniqueidentifier NOT NULL PRIMARY KEY,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL, Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Priority int NOT NULL, MaxRetries int NOT NULL, TimeoutMs bigint NOT NULL, MaxAgeMs bigint NOT NULL,
    OnCrash tinyint NOT NULL, CreatedAtUtc datetime2(3) NOT NULL,
    IdempotencyKey nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL, CreatedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    Tags nvarchar(1000) COLLATE Latin1_General_100_BIN2 NULL, Errors nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL, Payload nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
);
DECLARE @out TABLE (Id uniqueidentifier NOT NULL, IsResurrected bit NOT NULL, IsDead bit NOT NULL, HolderId uniqueidentifier NULL);

INSERT /* chokaq:resurrect */ INTO [chokaq].Queues (Name, UpdatedAtUtc)
SELECT s.Name, @now
FROM (SELECT @queue AS Name) AS s
WHERE s.Name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM [chokaq].Queues AS q WHERE q.Name = @queue);

BEGIN TRANSACTION;

INSERT /* chokaq:resurrect */ INTO @dead (Ord, Id, FailedAtUtc, Type, IdempotencyKey)
SELECT i.Ord, d.Id, d.FailedAtUtc, d.Type, d.IdempotencyKey
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsDLQ AS d WITH (INDEX(IX_JobsDLQ_Id), FORCESEEK, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
    ON d.Id = i.Id
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

DELETE /* chokaq:resurrect */ d
OUTPUT
    deleted.Id, deleted.Queue, deleted.Type, deleted.Priority, deleted.MaxRetries, deleted.TimeoutMs, deleted.MaxAgeMs,
    deleted.OnCrash, deleted.CreatedAtUtc, deleted.IdempotencyKey, deleted.CreatedBy, deleted.Tags, deleted.Errors,
    deleted.Payload
INTO @moved (
    Id, Queue, Type, Priority, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, IdempotencyKey, CreatedBy,
    Tags, Errors, Payload
)
FROM @dead AS i
INNER LOOP JOIN [chokaq].JobsDLQ AS d WITH (INDEX(PK_JobsDLQ), FORCESEEK, ROWLOCK)
    ON d.FailedAtUtc = i.FailedAtUtc AND d.Id = i.Id
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Idempotency), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE h.Type = i.Type AND h.IdempotencyKey = i.IdempotencyKey AND h.IdempotencyKey IS NOT NULL
    )
    AND NOT EXISTS (
        SELECT 1 FROM @dead AS e
        WHERE i.IdempotencyKey IS NOT NULL AND e.Ord < i.Ord AND e.Type = i.Type AND e.IdempotencyKey = i.IdempotencyKey
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:resurrect */ INTO [chokaq].JobsHot (
    Id, Queue, Type, Status, IsReady, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash,
    CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, IdempotencyKey, CreatedBy, Tags, Errors, Payload
)
SELECT
    m.Id, COALESCE(@queue, m.Queue), m.Type, 0, 1, COALESCE(@priority, m.Priority), 0, m.MaxRetries, m.TimeoutMs, m.MaxAgeMs, m.OnCrash,
    m.CreatedAtUtc, @now, DATEADD(millisecond, CONVERT(int, m.MaxAgeMs % 86400000), DATEADD(day, CONVERT(int, m.MaxAgeMs / 86400000), @now)),
    m.IdempotencyKey, m.CreatedBy, CASE WHEN @edits_tags = 1 THEN @tags ELSE m.Tags END, m.Errors,
    COALESCE(@payload, m.Payload)
FROM @moved AS m
INNER LOOP JOIN @in AS i ON i.Id = m.Id
ORDER BY i.Ord
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:resurrect */ INTO @out (Id, IsResurrected, IsDead, HolderId)
SELECT
    i.Id,
    CASE WHEN EXISTS (
        SELECT 1 FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id), FORCESEEK)
        WHERE h.Id = i.Id AND h.AttemptCount = 0 AND h.Errors IS NOT NULL
    ) THEN 1 ELSE 0 END,
    CASE WHEN d.Id IS NULL OR m.Id IS NOT NULL THEN 0 ELSE 1 END,
    (
        SELECT h.Id FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Idempotency), FORCESEEK)
        WHERE h.Type = d.Type AND h.IdempotencyKey = d.IdempotencyKey AND h.IdempotencyKey IS NOT NULL
            AND h.Id <> i.Id
    )
FROM @in AS i
LEFT LOOP JOIN @dead AS d ON d.Id = i.Id
LEFT LOOP JOIN @moved AS m ON m.Id = i.Id
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

SELECT o.Id, o.IsResurrected, o.IsDead, o.HolderId
FROM @out AS o;
