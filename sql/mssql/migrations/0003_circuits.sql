-- Circuit breakers that are not closed, as the workers tell of them: for people to see, nothing decides by it.
--
-- Twin: sql/sqlite/migrations/0002_circuits.sql. Worker and type are too long for a clustered key (900 bytes); the rows are few.

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
