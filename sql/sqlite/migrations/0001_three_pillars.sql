-- The Three Pillars: active work, history of successes, and what needs a person; beside them totals, rates and controls.
--
-- Twin: sql/mssql/migrations/0001_three_pillars.sql. Differences, each for throughput on one writer:
-- * only the indexes that the worker, idempotency, look-up by id and keyset pages need: each is paid for by every insert and move;
-- * IX_JobsHot_Active serves what FetchedRecovery, ProcessingHeartbeat and the MaxWorkers count do on SQL Server: active
--   rows are as few as the fleet has permits and buffers, so a walk over them is bounded, and a row that goes from
--   Fetched to Processing changes no index;
-- * no Shard in the counters: one writer, nothing to spread;
-- * ids are 16-byte blobs and times are milliseconds since 1970 (UTC); the views at the end show both as text.

CREATE TABLE JobsHot (
    -- The insert order; the worker's calls carry it.
    Seq INTEGER PRIMARY KEY,
    Id BLOB NOT NULL,
    Queue TEXT NOT NULL,
    Type TEXT NOT NULL,
    -- 0 Pending, 1 Fetched, 2 Processing.
    Status INTEGER NOT NULL,
    -- 0 while a Pending row waits for its due time; a fetch promotes it.
    IsReady INTEGER NOT NULL,
    Priority INTEGER NOT NULL,
    AttemptCount INTEGER NOT NULL,
    MaxRetries INTEGER NOT NULL,
    TimeoutMs INTEGER NOT NULL,
    MaxAgeMs INTEGER NOT NULL,
    -- 0 dead letter, 1 retry.
    OnCrash INTEGER NOT NULL,
    CreatedAtUtc INTEGER NOT NULL,
    ScheduledAtUtc INTEGER NOT NULL,
    DeadlineUtc INTEGER NOT NULL,
    -- The holder; NULL while Pending.
    WorkerId TEXT,
    -- The last fetch's fence; it stays when the row goes back, so that a repeated call recognises its own effect.
    LeaseId BLOB,
    FetchedAtUtc INTEGER,
    StartedAtUtc INTEGER,
    HeartbeatUtc INTEGER,
    -- The first strike of a zombie scan.
    SuspectUtc INTEGER,
    CancelRequestedUtc INTEGER,
    -- Since when it has gone round workers that do not know its type.
    UnknownSinceUtc INTEGER,
    IdempotencyKey TEXT,
    CreatedBy TEXT,
    -- A JSON array of strings.
    Tags TEXT,
    Progress REAL,
    ProgressNote TEXT,
    -- A JSON array of {attempt, at_ms, kind, text}, the newest 25.
    Errors TEXT,
    -- Last: a large one spills to overflow pages, which reads of the other columns then never touch.
    Payload TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX IX_JobsHot_Id ON JobsHot (Id);
CREATE INDEX IX_JobsHot_Fetch ON JobsHot (Queue, Priority DESC, ScheduledAtUtc)
    WHERE Status = 0 AND IsReady = 1;
CREATE INDEX IX_JobsHot_Delayed ON JobsHot (ScheduledAtUtc, Queue)
    WHERE Status = 0 AND IsReady = 0;
CREATE UNIQUE INDEX IX_JobsHot_Idempotency ON JobsHot (Type, IdempotencyKey)
    WHERE IdempotencyKey IS NOT NULL;
CREATE INDEX IX_JobsHot_Active ON JobsHot (Queue)
    WHERE Status > 0;

CREATE TABLE JobsArchive (
    -- The order of finishing: pages go by it.
    Seq INTEGER PRIMARY KEY,
    Id BLOB NOT NULL,
    Queue TEXT NOT NULL,
    Type TEXT NOT NULL,
    Priority INTEGER NOT NULL,
    AttemptCount INTEGER NOT NULL,
    MaxRetries INTEGER NOT NULL,
    CreatedAtUtc INTEGER NOT NULL,
    ScheduledAtUtc INTEGER NOT NULL,
    DeadlineUtc INTEGER NOT NULL,
    StartedAtUtc INTEGER NOT NULL,
    FinishedAtUtc INTEGER NOT NULL,
    WorkerId TEXT,
    LeaseId BLOB,
    IdempotencyKey TEXT,
    CreatedBy TEXT,
    Tags TEXT,
    Errors TEXT,
    -- JSON; NULL for `()` and where OutputNote says why it could not be kept.
    Output TEXT,
    OutputNote TEXT,
    Payload TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX IX_JobsArchive_Id ON JobsArchive (Id);
CREATE INDEX IX_JobsArchive_Queue ON JobsArchive (Queue);

CREATE TABLE JobsDLQ (
    -- The order of failing: pages go by it.
    Seq INTEGER PRIMARY KEY,
    Id BLOB NOT NULL,
    Queue TEXT NOT NULL,
    Type TEXT NOT NULL,
    Priority INTEGER NOT NULL,
    AttemptCount INTEGER NOT NULL,
    MaxRetries INTEGER NOT NULL,
    TimeoutMs INTEGER NOT NULL,
    MaxAgeMs INTEGER NOT NULL,
    OnCrash INTEGER NOT NULL,
    CreatedAtUtc INTEGER NOT NULL,
    ScheduledAtUtc INTEGER NOT NULL,
    DeadlineUtc INTEGER NOT NULL,
    -- NULL when it never started.
    StartedAtUtc INTEGER,
    FailedAtUtc INTEGER NOT NULL,
    -- MaxRetriesExceeded, Cancelled, Zombie, ...
    Reason TEXT NOT NULL,
    -- The last error's text.
    Error TEXT,
    WorkerId TEXT,
    LeaseId BLOB,
    IdempotencyKey TEXT,
    CreatedBy TEXT,
    Tags TEXT,
    Errors TEXT,
    Payload TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX IX_JobsDLQ_Id ON JobsDLQ (Id);
CREATE INDEX IX_JobsDLQ_Queue ON JobsDLQ (Queue);

CREATE TABLE Queues (
    Name TEXT PRIMARY KEY,
    IsPaused INTEGER NOT NULL DEFAULT 0,
    IsActive INTEGER NOT NULL DEFAULT 1,
    -- NULL: the global lease.
    ZombieTimeoutMs INTEGER,
    -- NULL: no limit.
    MaxWorkers INTEGER,
    UpdatedAtUtc INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE StatsSummary (
    Queue TEXT PRIMARY KEY,
    SucceededTotal INTEGER NOT NULL DEFAULT 0,
    FailedTotal INTEGER NOT NULL DEFAULT 0,
    RetriedTotal INTEGER NOT NULL DEFAULT 0,
    LastActivityUtc INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE MetricBuckets (
    -- The start of a bucket of 10 s.
    BucketUtc INTEGER NOT NULL,
    Queue TEXT NOT NULL,
    Succeeded INTEGER NOT NULL DEFAULT 0,
    Failed INTEGER NOT NULL DEFAULT 0,
    DurationMs INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (BucketUtc, Queue)
) STRICT, WITHOUT ROWID;

-- For people: ids as UUID text, times as ISO 8601.
CREATE VIEW JobsHotText AS
SELECT
    Seq,
    lower(substr(hex(Id), 1, 8) || '-' || substr(hex(Id), 9, 4) || '-' || substr(hex(Id), 13, 4) || '-'
        || substr(hex(Id), 17, 4) || '-' || substr(hex(Id), 21, 12)) AS Id,
    Queue, Type,
    CASE Status WHEN 0 THEN 'Pending' WHEN 1 THEN 'Fetched' ELSE 'Processing' END AS Status,
    Priority, AttemptCount, MaxRetries,
    strftime('%Y-%m-%dT%H:%M:%fZ', CreatedAtUtc / 1000.0, 'unixepoch') AS CreatedAtUtc,
    strftime('%Y-%m-%dT%H:%M:%fZ', ScheduledAtUtc / 1000.0, 'unixepoch') AS ScheduledAtUtc,
    strftime('%Y-%m-%dT%H:%M:%fZ', StartedAtUtc / 1000.0, 'unixepoch') AS StartedAtUtc,
    strftime('%Y-%m-%dT%H:%M:%fZ', HeartbeatUtc / 1000.0, 'unixepoch') AS HeartbeatUtc,
    WorkerId, IdempotencyKey, Tags, Errors, Payload
FROM JobsHot;

CREATE VIEW JobsArchiveText AS
SELECT
    Seq,
    lower(substr(hex(Id), 1, 8) || '-' || substr(hex(Id), 9, 4) || '-' || substr(hex(Id), 13, 4) || '-'
        || substr(hex(Id), 17, 4) || '-' || substr(hex(Id), 21, 12)) AS Id,
    Queue, Type, AttemptCount,
    strftime('%Y-%m-%dT%H:%M:%fZ', CreatedAtUtc / 1000.0, 'unixepoch') AS CreatedAtUtc,
    strftime('%Y-%m-%dT%H:%M:%fZ', StartedAtUtc / 1000.0, 'unixepoch') AS StartedAtUtc,
    strftime('%Y-%m-%dT%H:%M:%fZ', FinishedAtUtc / 1000.0, 'unixepoch') AS FinishedAtUtc,
    WorkerId, IdempotencyKey, Tags, Output, OutputNote, Errors, Payload
FROM JobsArchive;

CREATE VIEW JobsDLQText AS
SELECT
    Seq,
    lower(substr(hex(Id), 1, 8) || '-' || substr(hex(Id), 9, 4) || '-' || substr(hex(Id), 13, 4) || '-'
        || substr(hex(Id), 17, 4) || '-' || substr(hex(Id), 21, 12)) AS Id,
    Queue, Type, Reason, Error, AttemptCount,
    strftime('%Y-%m-%dT%H:%M:%fZ', CreatedAtUtc / 1000.0, 'unixepoch') AS CreatedAtUtc,
    strftime('%Y-%m-%dT%H:%M:%fZ', FailedAtUtc / 1000.0, 'unixepoch') AS FailedAtUtc,
    WorkerId, IdempotencyKey, Tags, Errors, Payload
FROM JobsDLQ;
