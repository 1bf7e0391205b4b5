-- What a DBA looks at and does for chokaq's tables: 1 doctor, 2 ghosts, 3 indexes, 4 statistics. Each part is a batch of its
-- own. 1 and 2 only read, 3 and 4 change nothing but indexes and statistics, online. Another schema: replace [chokaq].
--
-- Thresholds are argued, not measured. Rights: VIEW DATABASE STATE for 2 to 4 (VIEW DATABASE PERFORMANCE STATE from SQL
-- Server 2022), ALTER on the tables for 3 and 4.

-- 1 Doctor: no row is good news.
DECLARE @tables TABLE (Name sysname NOT NULL PRIMARY KEY);
INSERT INTO @tables (Name)
VALUES (N'JobsHot'), (N'JobsArchive'), (N'JobsDLQ'), (N'Queues'), (N'StatsSummary'), (N'MetricBuckets'), (N'Circuits'),
    (N'SchemaMigrations');
DECLARE @indexes TABLE (TableName sysname NOT NULL, Name sysname NOT NULL PRIMARY KEY);
INSERT INTO @indexes (TableName, Name)
VALUES
    (N'JobsHot', N'PK_JobsHot'), (N'JobsHot', N'IX_JobsHot_Id'), (N'JobsHot', N'IX_JobsHot_Fetch'),
    (N'JobsHot', N'IX_JobsHot_Delayed'), (N'JobsHot', N'IX_JobsHot_Idempotency'), (N'JobsHot', N'IX_JobsHot_QueueStats'),
    (N'JobsHot', N'IX_JobsHot_PendingLag'), (N'JobsHot', N'IX_JobsHot_FetchedRecovery'),
    (N'JobsHot', N'IX_JobsHot_ProcessingHeartbeat'), (N'JobsHot', N'IX_JobsHot_CancelRequested'),
    (N'JobsArchive', N'PK_JobsArchive'), (N'JobsArchive', N'IX_JobsArchive_Id'), (N'JobsArchive', N'IX_JobsArchive_Queue'),
    (N'JobsDLQ', N'PK_JobsDLQ'), (N'JobsDLQ', N'IX_JobsDLQ_Id'), (N'JobsDLQ', N'IX_JobsDLQ_Queue'),
    (N'JobsDLQ', N'IX_JobsDLQ_Reason'), (N'JobsDLQ', N'IX_JobsDLQ_Type'), (N'JobsDLQ', N'IX_JobsDLQ_CreatedAt'),
    (N'Queues', N'PK_Queues'), (N'StatsSummary', N'PK_StatsSummary'), (N'MetricBuckets', N'PK_MetricBuckets'),
    (N'Circuits', N'PK_Circuits'), (N'Circuits', N'IX_Circuits_Worker'),
    (N'Circuits', N'IX_Circuits_Seen'), (N'SchemaMigrations', N'PK_SchemaMigrations');

SELECT N'error' AS Severity, CONCAT(N'compatibility level ', d.compatibility_level) AS Finding,
    N'chokaq refuses to connect: ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = 130 or more' AS Remedy
FROM sys.databases AS d
WHERE d.database_id = DB_ID() AND d.compatibility_level < 130
UNION ALL
SELECT N'note', N'READ_COMMITTED_SNAPSHOT is off',
    N'chokaq works either way; other readers of its tables, such as reports, then wait for writers and make them wait'
FROM sys.databases AS d
WHERE d.database_id = DB_ID() AND d.is_read_committed_snapshot_on = 0
UNION ALL
SELECT N'error', N'PARAMETERIZATION is FORCED',
    N'it may turn the literals of filter predicates into parameters, and filtered indexes are not used then: ALTER DATABASE CURRENT SET PARAMETERIZATION SIMPLE'
FROM sys.databases AS d
WHERE d.database_id = DB_ID() AND d.is_parameterization_forced = 1
UNION ALL
SELECT N'error', CONCAT(N'the table ', e.Name, N' is missing, or this login may not see it'), N'migrate the schema'
FROM @tables AS e
WHERE OBJECT_ID(CONCAT(N'[chokaq].', e.Name), N'U') IS NULL
UNION ALL
SELECT N'error', CONCAT(N'LOCK_ESCALATION of JobsHot is ', t.lock_escalation_desc),
    N'a large statement would lock the table and stop every worker: ALTER TABLE [chokaq].JobsHot SET (LOCK_ESCALATION = DISABLE)'
FROM sys.tables AS t
WHERE t.object_id = OBJECT_ID(N'[chokaq].JobsHot', N'U') AND t.lock_escalation_desc <> N'DISABLE'
UNION ALL
SELECT N'warning', CONCAT(N'the trigger ', g.name, N' on ', e.Name),
    N'it runs inside every statement of the workers, and its locks are part of their transactions: do its work in a job instead'
FROM @tables AS e
INNER JOIN sys.triggers AS g ON g.parent_id = OBJECT_ID(CONCAT(N'[chokaq].', e.Name), N'U')
WHERE g.is_disabled = 0
UNION ALL
SELECT N'error', CONCAT(N'the index ', e.Name, N' is ', CASE WHEN i.is_disabled = 1 THEN N'disabled' ELSE N'missing' END),
    N'statements name it and fail without it (308, 315): rebuild it, or create it as the migration does'
FROM @indexes AS e
LEFT JOIN sys.indexes AS i ON i.object_id = OBJECT_ID(CONCAT(N'[chokaq].', e.TableName), N'U') AND i.name = e.Name
WHERE OBJECT_ID(CONCAT(N'[chokaq].', e.TableName), N'U') IS NOT NULL AND (i.name IS NULL OR i.is_disabled = 1)
UNION ALL
SELECT N'warning', CONCAT(N'the index ', i.name, N' on JobsHot is not chokaq''s'),
    N'each index there is written several times for every job: drop it if nobody needs it'
FROM sys.indexes AS i
WHERE i.object_id = OBJECT_ID(N'[chokaq].JobsHot', N'U') AND i.name NOT IN (SELECT e.Name FROM @indexes AS e)
UNION ALL
SELECT N'warning', CONCAT(N'the index ', i.name, N' on JobsHot allows no row locks or no page locks'),
    N'claims lock single rows, REORGANIZE needs page locks: ALTER INDEX ... SET (ALLOW_ROW_LOCKS = ON, ALLOW_PAGE_LOCKS = ON)'
FROM sys.indexes AS i
WHERE i.object_id = OBJECT_ID(N'[chokaq].JobsHot', N'U') AND (i.allow_row_locks = 0 OR i.allow_page_locks = 0);
GO

-- 2 Ghosts: a row that left an index stays as a ghost until a cleanup task takes it, and as a version ghost as long as some
-- open transaction may still read it. Claims walk the low end of IX_JobsHot_Fetch, where they gather: a fetch that gets
-- slower while its backlog does not grow is this. SAMPLED reads 1 % of a large index; run it every few minutes and alert
-- where Verdict is not 'good'.
SELECT i.name AS IndexName, p.index_type_desc AS Kind, p.record_count AS Records, p.ghost_record_count AS Ghosts,
    p.version_ghost_record_count AS VersionGhosts, p.page_count AS Pages,
    CASE
        WHEN p.version_ghost_record_count > 100000 AND p.version_ghost_record_count > 10 * p.record_count
            THEN N'an old transaction holds versions: see the next result'
        WHEN p.ghost_record_count > 100000 AND p.ghost_record_count > 10 * p.record_count
            THEN N'the cleanup does not keep up: REORGANIZE, part 3'
        ELSE N'good'
    END AS Verdict
FROM sys.dm_db_index_physical_stats(DB_ID(), OBJECT_ID(N'[chokaq].JobsHot', N'U'), NULL, NULL, N'SAMPLED') AS p
INNER JOIN sys.indexes AS i ON i.object_id = p.object_id AND i.index_id = p.index_id
WHERE p.index_level = 0 AND p.alloc_unit_type_desc = N'IN_ROW_DATA'
ORDER BY p.ghost_record_count + p.version_ghost_record_count DESC;

-- Who holds them: the oldest transactions of the database. A readable secondary replica holds versions on the primary too:
-- its own long queries are seen there.
SELECT TOP (10) s.session_id AS SessionId, s.program_name AS Program, s.host_name AS Host, s.login_name AS Login,
    t.transaction_begin_time AS BeganAt, DATEDIFF_BIG(second, t.transaction_begin_time, SYSDATETIME()) AS OpenForSeconds
FROM sys.dm_tran_session_transactions AS x
INNER JOIN sys.dm_tran_active_transactions AS t ON t.transaction_id = x.transaction_id
INNER JOIN sys.dm_exec_sessions AS s ON s.session_id = x.session_id
WHERE s.database_id = DB_ID()
ORDER BY t.transaction_begin_time;
GO

-- 3 Indexes: every job goes in and out of IX_JobsHot_Fetch and IX_JobsHot_FetchedRecovery, and every beat moves it within
-- IX_JobsHot_ProcessingHeartbeat, so pages of these three empty from one end. REORGANIZE is online in every edition, takes
-- short page locks and can be stopped at any time; a REBUILD is not needed. Once a night is plenty; nothing is done to an
-- index that is small or dense.
SET DEADLOCK_PRIORITY LOW;
SET LOCK_TIMEOUT 5000;
DECLARE @name sysname, @sql nvarchar(max);
DECLARE @churning CURSOR;
SET @churning = CURSOR LOCAL FAST_FORWARD FOR
    SELECT i.name
    FROM sys.dm_db_index_physical_stats(DB_ID(), OBJECT_ID(N'[chokaq].JobsHot', N'U'), NULL, NULL, N'SAMPLED') AS p
    INNER JOIN sys.indexes AS i ON i.object_id = p.object_id AND i.index_id = p.index_id
    WHERE i.name IN (N'IX_JobsHot_Fetch', N'IX_JobsHot_FetchedRecovery', N'IX_JobsHot_ProcessingHeartbeat')
        AND p.index_level = 0 AND p.page_count > 1000 AND p.avg_page_space_used_in_percent < 60;
OPEN @churning;
FETCH NEXT FROM @churning INTO @name;
WHILE @@FETCH_STATUS = 0
BEGIN
    SET @sql = CONCAT(N'ALTER INDEX ', QUOTENAME(@name), N' ON [chokaq].JobsHot REORGANIZE;');
    PRINT @sql;
    EXEC (@sql);
    FETCH NEXT FROM @churning INTO @name;
END;
CLOSE @churning;
DEALLOCATE @churning;
GO

-- 4 Statistics: those of JobsHot's indexes are left alone on purpose (STATISTICS_NORECOMPUTE): its size swings between
-- nothing and millions, its statements name their indexes and keep their plans. Leave JobsHot out of plans that update all
-- statistics. History grows evenly and is read by people: automatic updates do, and after a large import this.
UPDATE STATISTICS [chokaq].JobsArchive;
UPDATE STATISTICS [chokaq].JobsDLQ;

SELECT OBJECT_NAME(s.object_id) AS TableName, s.name AS StatisticsName, s.no_recompute AS IsLeftAlone, p.last_updated AS UpdatedAt,
    p.rows AS RowsThen, p.modification_counter AS ChangesSince
FROM sys.stats AS s
CROSS APPLY sys.dm_db_stats_properties(s.object_id, s.stats_id) AS p
WHERE s.object_id IN (OBJECT_ID(N'[chokaq].JobsHot', N'U'), OBJECT_ID(N'[chokaq].JobsArchive', N'U'), OBJECT_ID(N'[chokaq].JobsDLQ', N'U'))
ORDER BY TableName, StatisticsName;
