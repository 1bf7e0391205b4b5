-- Caller: MigrationStorage::migrate, before the first migration and under its application lock.
-- Intent: the schema exists, and the table that records what was applied.
-- Invariant: what is there is left as it is.
-- Twin: SQLite has no schemas; its ledger stands in the program. Here the program replaces the two names of the schema
--   below as well.
-- Locks: the schema's own.
-- Retry: safe, it looks before it creates.
IF SCHEMA_ID(N'chokaq') IS NULL
    EXEC (N'CREATE SCHEMA [chokaq]');

IF OBJECT_ID(N'[chokaq].SchemaMigrations', N'U') IS NULL
    CREATE TABLE [chokaq].SchemaMigrations (
        Version int NOT NULL,
        Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
        AppliedAtUtc datetime2(3) NOT NULL,
        AppliedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
        -- The least level of a program that can work with the schema after it.
        MinBinary int NOT NULL,
        CONSTRAINT PK_SchemaMigrations PRIMARY KEY CLUSTERED (Version)
    );
