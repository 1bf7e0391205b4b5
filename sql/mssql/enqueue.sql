-- Caller: ProducerStorage::enqueue, once per call.
-- Intent: Pending rows, or the reason why there are none. Queues that they name exist after it.
-- Invariant: a job is in one table only: after the insert nobody else can bring its id into JobsHot, so what stands
--   in history then was there before, and the row just inserted goes again. An active key of a type is held once,
--   also within the call. Two producers at once are decided by the unique indexes: 2601 or 2627, everything is rolled
--   back, and the call run again finds the winner.
-- Twin: takes the whole call as JSON. A missing queue is inserted in a statement of its own, before the transaction:
--   an enqueue holds no lock on Queues.
-- Locks: Hot > Archive > DLQ. Waits only for a row with the same id or key: two calls with the same
--   keys in another order may deadlock (1205), and so may a resurrect: the run after it finds the winner. The look into history keeps no lock.
-- Retry: safe, also after 2601 and 2627: its own jobs are found by their ids, wherever they are by now.
-- @jobs nvarchar(max), [{"i": Id, "q": queue, "y": type, "b": payload, "g": tags, "k": key, "c": created by, "p": priority, "r": retries, "to": timeout in ms, "ma": max age in ms, "oc": on crash, "ds": delay in s, "dm": and ms, "at": due time, ISO 8601}]
-- Answers: Ord (from 0, as in the call), IsStored, HolderId; where neither holds the holder has just finished: run it
--   again.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (
    Ord int NOT NULL PRIMARY KEY, Id uniqueidentifier NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL, Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Payload nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL, Tags nvarchar(1000) COLLATE Latin1_General_100_BIN2 NULL,
    IdempotencyKey nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL, CreatedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    Priority int NOT NULL, MaxRetries int NOT NULL, TimeoutMs bigint NOT NULL, MaxAgeMs bigint NOT NULL,
    OnCrash tinyint NOT NULL, DueUtc datetime2(3) NOT NULL
);
INSERT INTO @in (
    Ord, Id, Queue, Type, Payload, Tags, IdempotencyKey, CreatedBy, Priority, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash,
    DueUtc
)
SELECT
    CONVERT(int, a.[key]), j.Id, j.Queue, j.Type, j.Payload, j.Tags, j.IdempotencyKey, j.CreatedBy, j.Priority,
    j.MaxRetries, j.TimeoutMs, j.MaxAgeMs, j.OnCrash,
    -- A time in the past means now: it must not shorten the lifetime, nor overtake who came before.
    CASE
        WHEN j.DueAt > @now THEN j.DueAt
        ELSE DATEADD(millisecond, COALESCE(j.DelayMs, 0), DATEADD(second, COALESCE(j.DelayS, 0), @now))
    END
FROM OPENJSON(@jobs) AS a
CROSS APPLY OPENJSON(a.[value]) WITH (
    Id uniqueidentifier '$.i', Queue nvarchar(255) '$.q', Type nvarchar(255) '$.y', Payload nvarchar(max) '$.b',
    Tags nvarchar(1000) '$.g', IdempotencyKey nvarchar(255) '$.k', CreatedBy nvarchar(255) '$.c', Priority int '$.p',
    MaxRetries int '$.r', TimeoutMs bigint '$.to', MaxAgeMs bigint '$.ma', OnCrash tinyint '$.oc', DelayS int '$.ds',
    DelayMs int '$.dm', DueAt datetime2(3) '$.at'
) AS j;
-- The first of the call with each key. Not clustered: the two names may take 1,020 bytes.
DECLARE @first TABLE (
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL, IdempotencyKey nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Ord int NOT NULL, PRIMARY KEY NONCLUSTERED (Type, IdempotencyKey)
);
INSERT INTO @first (Type, IdempotencyKey, Ord)
SELECT i.Type, i.IdempotencyKey, MIN(i.Ord)
FROM @in AS i
WHERE i.IdempotencyKey IS NOT NULL
GROUP BY i.Type, i.IdempotencyKey;
DECLARE @new TABLE (Seq bigint NOT NULL PRIMARY KEY, Id uniqueidentifier NOT NULL);
DECLARE @out TABLE (Ord int NOT NULL PRIMARY KEY, IsStored bit NOT NULL, HolderId uniqueidentifier NULL);

INSERT /* chokaq:enqueue */ INTO [chokaq].Queues (Name, UpdatedAtUtc)
SELECT DISTINCT i.Queue, @now
FROM @in AS i
WHERE NOT EXISTS (SELECT 1 FROM [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK) WHERE q.Name = i.Queue)
OPTION (MAXDOP 1, KEEPFIXED PLAN);

BEGIN TRANSACTION;

INSERT /* chokaq:enqueue */ INTO [chokaq].JobsHot (
    Id, Queue, Type, Status, IsReady, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash,
    CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, IdempotencyKey, CreatedBy, Tags, Payload
)
OUTPUT inserted.Seq, inserted.Id INTO @new (Seq, Id)
SELECT
    i.Id, i.Queue, i.Type, 0, CASE WHEN i.DueUtc > @now THEN 0 ELSE 1 END, i.Priority, 0, i.MaxRetries, i.TimeoutMs,
    i.MaxAgeMs, i.OnCrash, @now, i.DueUtc,
    DATEADD(millisecond, CONVERT(int, i.MaxAgeMs % 86400000), DATEADD(day, CONVERT(int, i.MaxAgeMs / 86400000), i.DueUtc)),
    i.IdempotencyKey, i.CreatedBy, i.Tags, i.Payload
FROM @in AS i
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE h.Id = i.Id
    )
    AND NOT EXISTS (
        SELECT 1 FROM [chokaq].JobsHot AS k WITH (INDEX(IX_JobsHot_Idempotency), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE k.Type = i.Type AND k.IdempotencyKey = i.IdempotencyKey AND k.IdempotencyKey IS NOT NULL
    )
    AND (
        i.IdempotencyKey IS NULL
        OR EXISTS (
            SELECT 1 FROM @first AS f
            WHERE f.Type = i.Type AND f.IdempotencyKey = i.IdempotencyKey AND f.Ord = i.Ord
        )
    )
ORDER BY i.Ord
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

DELETE /* chokaq:enqueue */ h
FROM @new AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.Status = 0
    AND (
        EXISTS (SELECT 1 FROM [chokaq].JobsArchive AS a WITH (INDEX(IX_JobsArchive_Id), FORCESEEK) WHERE a.Id = i.Id)
        OR EXISTS (SELECT 1 FROM [chokaq].JobsDLQ AS d WITH (INDEX(IX_JobsDLQ_Id), FORCESEEK) WHERE d.Id = i.Id)
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:enqueue */ INTO @out (Ord, IsStored, HolderId)
SELECT
    i.Ord,
    CASE
        WHEN EXISTS (SELECT 1 FROM @new AS n WHERE n.Id = i.Id)
            OR EXISTS (SELECT 1 FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id), FORCESEEK) WHERE h.Id = i.Id)
            OR EXISTS (SELECT 1 FROM [chokaq].JobsArchive AS a WITH (INDEX(IX_JobsArchive_Id), FORCESEEK) WHERE a.Id = i.Id)
            OR EXISTS (SELECT 1 FROM [chokaq].JobsDLQ AS d WITH (INDEX(IX_JobsDLQ_Id), FORCESEEK) WHERE d.Id = i.Id) THEN 1
        ELSE 0
    END,
    -- ISNULL, not COALESCE: that would look twice.
    ISNULL(
        (
            SELECT h.Id FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Idempotency), FORCESEEK)
            WHERE h.Type = i.Type AND h.IdempotencyKey = i.IdempotencyKey AND h.IdempotencyKey IS NOT NULL
        ),
        -- An earlier one of this call, which has finished since a first run of it.
        (
            SELECT e.Id
            FROM @first AS f
            INNER JOIN @in AS e ON e.Ord = f.Ord
            WHERE f.Type = i.Type AND f.IdempotencyKey = i.IdempotencyKey AND f.Ord < i.Ord
        )
    )
FROM @in AS i
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

SELECT o.Ord, o.IsStored, o.HolderId
FROM @out AS o;
