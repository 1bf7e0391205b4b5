-- The tables after every migration, as plain CREATE statements: what the checks bind the queries against. A test holds them
-- to the migrations, as another does the procedures in procedures/. Not run by anything.

CREATE TABLE [chokaq].JobsHot (
    -- The insert order, and the order in which several rows are locked; the worker's calls carry it.
    Seq bigint IDENTITY(1, 1) NOT NULL,
    Id uniqueidentifier NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    -- 0 Pending, 1 Fetched, 2 Processing.
    Status tinyint NOT NULL,
    -- 0 while a Pending row waits for its due time; a fetch promotes it.
    IsReady bit NOT NULL,
    Priority int NOT NULL,
    AttemptCount int NOT NULL,
    MaxRetries int NOT NULL,
    TimeoutMs bigint NOT NULL,
    MaxAgeMs bigint NOT NULL,
    -- 0 dead letter, 1 retry.
    OnCrash tinyint NOT NULL,
    CreatedAtUtc datetime2(3) NOT NULL,
    ScheduledAtUtc datetime2(3) NOT NULL,
    DeadlineUtc datetime2(3) NOT NULL,
    -- The holder; NULL while Pending.
    WorkerId nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    -- The last fetch's fence; it stays when the row goes back, so that a repeated call recognises its own effect.
    LeaseId uniqueidentifier NULL,
    FetchedAtUtc datetime2(3) NULL,
    StartedAtUtc datetime2(3) NULL,
    HeartbeatUtc datetime2(3) NULL,
    -- The first strike of a zombie scan.
    SuspectUtc datetime2(3) NULL,
    CancelRequestedUtc datetime2(3) NULL,
    -- Since when it has gone round workers that do not know its type.
    UnknownSinceUtc datetime2(3) NULL,
    IdempotencyKey nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    CreatedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    -- A JSON array of strings; too long for an index key, so no index has it.
    Tags nvarchar(1000) COLLATE Latin1_General_100_BIN2 NULL,
    Progress float NULL,
    ProgressNote nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    -- A JSON array of {attempt, at_ms, kind, text}, the newest 25.
    Errors nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    Payload nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT PK_JobsHot PRIMARY KEY CLUSTERED (Seq) WITH (STATISTICS_NORECOMPUTE = ON)
);

-- Workers and producers name a job by its id where they have no Seq.
CREATE UNIQUE NONCLUSTERED INDEX IX_JobsHot_Id ON [chokaq].JobsHot (Id) WITH (STATISTICS_NORECOMPUTE = ON);
-- The claim walks it, and locks what it walks.
CREATE NONCLUSTERED INDEX IX_JobsHot_Fetch ON [chokaq].JobsHot (Queue, Priority DESC, ScheduledAtUtc, Seq)
    WHERE Status = 0 AND IsReady = 1 WITH (STATISTICS_NORECOMPUTE = ON);
-- Delayed rows by time: a fetch promotes those that are due.
CREATE NONCLUSTERED INDEX IX_JobsHot_Delayed ON [chokaq].JobsHot (ScheduledAtUtc, Queue)
    WHERE Status = 0 AND IsReady = 0 WITH (STATISTICS_NORECOMPUTE = ON);
CREATE UNIQUE NONCLUSTERED INDEX IX_JobsHot_Idempotency ON [chokaq].JobsHot (Type, IdempotencyKey) INCLUDE (Id)
    WHERE IdempotencyKey IS NOT NULL WITH (STATISTICS_NORECOMPUTE = ON);
-- The MaxWorkers count and the dashboard. Status is not in the key: a row that starts changes in place, and no count
-- misses it on its way.
CREATE NONCLUSTERED INDEX IX_JobsHot_QueueStats ON [chokaq].JobsHot (Queue) INCLUDE (Status)
    WHERE Status > 0 WITH (STATISTICS_NORECOMPUTE = ON);
-- The oldest ready row of a queue, whatever its priority.
CREATE NONCLUSTERED INDEX IX_JobsHot_PendingLag ON [chokaq].JobsHot (Queue, ScheduledAtUtc)
    WHERE Status = 0 AND IsReady = 1 WITH (STATISTICS_NORECOMPUTE = ON);
CREATE NONCLUSTERED INDEX IX_JobsHot_FetchedRecovery ON [chokaq].JobsHot (FetchedAtUtc) INCLUDE (WorkerId, LeaseId)
    WHERE Status = 1 WITH (STATISTICS_NORECOMPUTE = ON);
CREATE NONCLUSTERED INDEX IX_JobsHot_ProcessingHeartbeat ON [chokaq].JobsHot (HeartbeatUtc) INCLUDE (Queue, SuspectUtc)
    WHERE Status = 2 WITH (STATISTICS_NORECOMPUTE = ON);
-- Empty but for the moments between a cancel and its delivery.
CREATE NONCLUSTERED INDEX IX_JobsHot_CancelRequested ON [chokaq].JobsHot (WorkerId) INCLUDE (Id, Status)
    WHERE CancelRequestedUtc IS NOT NULL WITH (STATISTICS_NORECOMPUTE = ON);

CREATE TABLE [chokaq].JobsArchive (
    Id uniqueidentifier NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Priority int NOT NULL,
    AttemptCount int NOT NULL,
    MaxRetries int NOT NULL,
    CreatedAtUtc datetime2(3) NOT NULL,
    ScheduledAtUtc datetime2(3) NOT NULL,
    DeadlineUtc datetime2(3) NOT NULL,
    StartedAtUtc datetime2(3) NOT NULL,
    FinishedAtUtc datetime2(3) NOT NULL,
    WorkerId nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    LeaseId uniqueidentifier NULL,
    IdempotencyKey nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    CreatedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    Tags nvarchar(1000) COLLATE Latin1_General_100_BIN2 NULL,
    Errors nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    -- JSON; NULL for `()` and where OutputNote says why it could not be kept.
    [Output] nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    OutputNote nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    Payload nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT PK_JobsArchive PRIMARY KEY CLUSTERED (FinishedAtUtc, Id) WITH (DATA_COMPRESSION = PAGE)
);

-- By the order of uniqueidentifier a UUIDv7 is random: pages that split, and keys that do not compress.
CREATE UNIQUE NONCLUSTERED INDEX IX_JobsArchive_Id ON [chokaq].JobsArchive (Id) WITH (FILLFACTOR = 80);
CREATE NONCLUSTERED INDEX IX_JobsArchive_Queue ON [chokaq].JobsArchive (Queue, FinishedAtUtc, Id)
    WITH (DATA_COMPRESSION = PAGE);

CREATE TABLE [chokaq].JobsDLQ (
    Id uniqueidentifier NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Priority int NOT NULL,
    AttemptCount int NOT NULL,
    MaxRetries int NOT NULL,
    TimeoutMs bigint NOT NULL,
    MaxAgeMs bigint NOT NULL,
    OnCrash tinyint NOT NULL,
    CreatedAtUtc datetime2(3) NOT NULL,
    ScheduledAtUtc datetime2(3) NOT NULL,
    DeadlineUtc datetime2(3) NOT NULL,
    -- NULL when it never started.
    StartedAtUtc datetime2(3) NULL,
    FailedAtUtc datetime2(3) NOT NULL,
    -- MaxRetriesExceeded, Cancelled, Zombie, ...
    Reason nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    -- The last error's text.
    Error nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    WorkerId nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    LeaseId uniqueidentifier NULL,
    IdempotencyKey nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    CreatedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL,
    Tags nvarchar(1000) COLLATE Latin1_General_100_BIN2 NULL,
    Errors nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
    Payload nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT PK_JobsDLQ PRIMARY KEY CLUSTERED (FailedAtUtc, Id) WITH (DATA_COMPRESSION = PAGE)
);

-- By the order of uniqueidentifier a UUIDv7 is random: pages that split, and keys that do not compress.
CREATE UNIQUE NONCLUSTERED INDEX IX_JobsDLQ_Id ON [chokaq].JobsDLQ (Id) WITH (FILLFACTOR = 80);
CREATE NONCLUSTERED INDEX IX_JobsDLQ_Queue ON [chokaq].JobsDLQ (Queue, FailedAtUtc, Id) WITH (DATA_COMPRESSION = PAGE);
CREATE NONCLUSTERED INDEX IX_JobsDLQ_Reason ON [chokaq].JobsDLQ (Reason, FailedAtUtc, Id) WITH (DATA_COMPRESSION = PAGE);
CREATE NONCLUSTERED INDEX IX_JobsDLQ_Type ON [chokaq].JobsDLQ (Type, FailedAtUtc, Id) WITH (DATA_COMPRESSION = PAGE);
CREATE NONCLUSTERED INDEX IX_JobsDLQ_CreatedAt ON [chokaq].JobsDLQ (CreatedAtUtc, Id) WITH (DATA_COMPRESSION = PAGE);

CREATE TABLE [chokaq].Queues (
    Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    IsPaused bit NOT NULL CONSTRAINT DF_Queues_IsPaused DEFAULT 0,
    IsActive bit NOT NULL CONSTRAINT DF_Queues_IsActive DEFAULT 1,
    -- NULL: the global lease.
    ZombieTimeoutMs bigint NULL,
    -- NULL: no limit.
    MaxWorkers int NULL,
    UpdatedAtUtc datetime2(3) NOT NULL,
    CONSTRAINT PK_Queues PRIMARY KEY CLUSTERED (Name)
);


CREATE TABLE [chokaq].StatsSummary (
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    -- A hash of the connection: one row per queue would make every completion wait for the log flush of the one before.
    Shard tinyint NOT NULL,
    SucceededTotal bigint NOT NULL CONSTRAINT DF_StatsSummary_Succeeded DEFAULT 0,
    FailedTotal bigint NOT NULL CONSTRAINT DF_StatsSummary_Failed DEFAULT 0,
    RetriedTotal bigint NOT NULL CONSTRAINT DF_StatsSummary_Retried DEFAULT 0,
    LastActivityUtc datetime2(3) NULL,
    CONSTRAINT PK_StatsSummary PRIMARY KEY CLUSTERED (Queue, Shard)
);


CREATE TABLE [chokaq].MetricBuckets (
    -- The start of a bucket of 10 s.
    BucketUtc datetime2(3) NOT NULL,
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Shard tinyint NOT NULL,
    Succeeded bigint NOT NULL CONSTRAINT DF_MetricBuckets_Succeeded DEFAULT 0,
    Failed bigint NOT NULL CONSTRAINT DF_MetricBuckets_Failed DEFAULT 0,
    DurationMs bigint NOT NULL CONSTRAINT DF_MetricBuckets_Duration DEFAULT 0,
    CONSTRAINT PK_MetricBuckets PRIMARY KEY CLUSTERED (BucketUtc, Queue, Shard)
);

CREATE TABLE [chokaq].Circuits (
    Seq bigint IDENTITY(1, 1) NOT NULL,
    WorkerId nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    -- 1 open, 2 half-open.
    State tinyint NOT NULL,
    -- Since the last success.
    Failures int NOT NULL,
    -- The last error's text.
    Error nvarchar(1000) COLLATE Latin1_General_100_BIN2 NOT NULL,
    OpenedAtUtc datetime2(3) NOT NULL,
    -- When a job of the type is tried next.
    RetryAtUtc datetime2(3) NOT NULL,
    -- When the worker last told of it.
    SeenAtUtc datetime2(3) NOT NULL,
    CONSTRAINT PK_Circuits PRIMARY KEY CLUSTERED (Seq)
);

CREATE UNIQUE NONCLUSTERED INDEX IX_Circuits_Worker ON [chokaq].Circuits (WorkerId, Type);
CREATE NONCLUSTERED INDEX IX_Circuits_Seen ON [chokaq].Circuits (SeenAtUtc);

CREATE TABLE [chokaq].SchemaMigrations (
    Version int NOT NULL,
    Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    AppliedAtUtc datetime2(3) NOT NULL,
    AppliedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    -- The least level of a program that can work with the schema after it.
    MinBinary int NOT NULL,
    CONSTRAINT PK_SchemaMigrations PRIMARY KEY CLUSTERED (Version)
);
