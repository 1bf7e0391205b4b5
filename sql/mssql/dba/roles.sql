-- Roles with what each program needs and nothing else. Run it as db_owner: once before the first migration, which makes the
-- schema and the migrator's rights, and once after it, when the tables are there. Running it again changes nothing.
--
-- A test derives the rights from the statements themselves. Then, for each program's user (CREATE USER ... first):
--     ALTER ROLE chokaq_worker ADD MEMBER [shop_worker];
--
--   chokaq_producer  enqueues: by the programs' statement, or by EXEC chokaq.Enqueue, for which EXECUTE alone would do
--   chokaq_worker    runs jobs; a worker whose handlers enqueue is a producer too
--   chokaq_reader    looks: dashboards, pool.job(id)
--   chokaq_operator  looks, cancels (pool.cancel(id) too), resurrects, purges, pauses and limits queues
--   chokaq_migrator  changes the schema: pool.migrate(), CHOKAQ_AUTO_MIGRATE. A person who runs the printed plan as
--                    db_owner needs no such login. Whoever may ALTER the schema can read it as well: keep it apart.
--
-- No role but the last may change the schema. Locks, hints, DEADLOCK_PRIORITY and the migrations' application lock need no
-- right. The views of dba/watch.sql and dba/maintenance.sql need VIEW DATABASE STATE besides (VIEW DATABASE PERFORMANCE
-- STATE from SQL Server 2022), and it is not granted here: it shows all sessions of the database.
--
-- Another schema: replace [chokaq] and N'chokaq' in the whole file. Roles belong to the database: two schemas whose
-- programs must not meet need roles of their own names.

IF DATABASE_PRINCIPAL_ID(N'chokaq_producer') IS NULL
    CREATE ROLE chokaq_producer;
IF DATABASE_PRINCIPAL_ID(N'chokaq_worker') IS NULL
    CREATE ROLE chokaq_worker;
IF DATABASE_PRINCIPAL_ID(N'chokaq_reader') IS NULL
    CREATE ROLE chokaq_reader;
IF DATABASE_PRINCIPAL_ID(N'chokaq_operator') IS NULL
    CREATE ROLE chokaq_operator;
IF DATABASE_PRINCIPAL_ID(N'chokaq_migrator') IS NULL
    CREATE ROLE chokaq_migrator;

-- An operator looks before it acts.
IF IS_ROLEMEMBER(N'chokaq_reader', N'chokaq_operator') = 0
    ALTER ROLE chokaq_reader ADD MEMBER chokaq_operator;

-- dbo owns it, and so the tables and the procedure in it, whoever creates them: a producer that may EXECUTE the procedure
-- needs no right on the tables. With the schema there the migrator needs no CREATE SCHEMA.
IF SCHEMA_ID(N'chokaq') IS NULL
    EXEC (N'CREATE SCHEMA [chokaq] AUTHORIZATION dbo;');

GRANT CREATE TABLE, CREATE PROCEDURE TO chokaq_migrator;
GRANT ALTER ON SCHEMA::[chokaq] TO chokaq_migrator;
-- The ledger of migrations, before it exists.
GRANT SELECT, INSERT ON SCHEMA::[chokaq] TO chokaq_migrator;

IF OBJECT_ID(N'[chokaq].SchemaMigrations', N'U') IS NULL
    PRINT N'There are no tables yet: run this file again after the first migration.';
ELSE
BEGIN
    -- Every program looks at it when it connects.
    GRANT SELECT ON [chokaq].SchemaMigrations TO chokaq_producer;
    GRANT SELECT ON [chokaq].SchemaMigrations TO chokaq_worker;
    GRANT SELECT ON [chokaq].SchemaMigrations TO chokaq_reader;

    -- Deletes what it has just inserted where the job has been through already.
    GRANT SELECT, INSERT, DELETE ON [chokaq].JobsHot TO chokaq_producer;
    GRANT SELECT ON [chokaq].JobsArchive TO chokaq_producer;
    GRANT SELECT ON [chokaq].JobsDLQ TO chokaq_producer;
    GRANT SELECT, INSERT ON [chokaq].Queues TO chokaq_producer;
    IF OBJECT_ID(N'[chokaq].Enqueue', N'P') IS NOT NULL
        GRANT EXECUTE ON [chokaq].Enqueue TO chokaq_producer;

    GRANT SELECT ON [chokaq].Queues TO chokaq_worker;
    GRANT SELECT, UPDATE, DELETE ON [chokaq].JobsHot TO chokaq_worker;
    GRANT SELECT, INSERT ON [chokaq].JobsArchive TO chokaq_worker;
    GRANT SELECT, INSERT ON [chokaq].JobsDLQ TO chokaq_worker;
    GRANT SELECT, INSERT, UPDATE ON [chokaq].MetricBuckets TO chokaq_worker;
    GRANT SELECT, INSERT, UPDATE ON [chokaq].StatsSummary TO chokaq_worker;
    GRANT SELECT, INSERT, DELETE ON [chokaq].Circuits TO chokaq_worker;

    GRANT SELECT ON [chokaq].Queues TO chokaq_reader;
    GRANT SELECT ON [chokaq].JobsHot TO chokaq_reader;
    GRANT SELECT ON [chokaq].JobsArchive TO chokaq_reader;
    GRANT SELECT ON [chokaq].JobsDLQ TO chokaq_reader;
    GRANT SELECT ON [chokaq].MetricBuckets TO chokaq_reader;
    GRANT SELECT ON [chokaq].StatsSummary TO chokaq_reader;
    GRANT SELECT ON [chokaq].Circuits TO chokaq_reader;

    -- Beside what a reader has.
    GRANT INSERT, UPDATE ON [chokaq].Queues TO chokaq_operator;
    GRANT INSERT, UPDATE, DELETE ON [chokaq].JobsHot TO chokaq_operator;
    GRANT DELETE ON [chokaq].JobsArchive TO chokaq_operator;
    GRANT INSERT, DELETE ON [chokaq].JobsDLQ TO chokaq_operator;
    GRANT INSERT, UPDATE, DELETE ON [chokaq].MetricBuckets TO chokaq_operator;
    GRANT INSERT, UPDATE ON [chokaq].StatsSummary TO chokaq_operator;
END;
