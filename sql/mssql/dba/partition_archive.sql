-- Turns JobsArchive into a table partitioned by day (or week) of FinishedAtUtc, so that old history leaves by TRUNCATE of a
-- partition: a change of metadata, whatever the number of rows, instead of deletes that are logged row by row.
--
-- For archives that take in some million rows a day; below that, leave the table as it is. SQL Server 2016 SP1 or later,
-- any edition, and Azure SQL. Argued from the documentation, not measured: try it on a copy first.
--
-- What changes with it:
-- * Every index of a table must be aligned with its partitions before one can be truncated or switched out. The primary
--   key (FinishedAtUtc, Id) and IX_JobsArchive_Queue hold the partitioning column already.
-- * IX_JobsArchive_Id is UNIQUE on Id alone. An aligned unique index must hold the partitioning column in its key, and
--   UNIQUE (Id, FinishedAtUtc) would promise nothing about Id. So it is made again under the same name (the statements
--   name it), on Id, not unique. The database then no longer refuses a second archive row of a job. Nothing in chokaq
--   leans on that refusal: a row comes here only from the DELETE in JobsHot that took it, whose Id is unique there, and
--   enqueue looks for its id here before it commits. A restore or an import by hand has to look for itself.
-- * A seek by Id alone has to look into every partition: enqueue does one for each new job, find_job for each call. This
--   script makes 17, half of them empty: 17 seeks of up to three pages each. So keep them few: days for one or two weeks
--   of history, weeks for a quarter.
--
-- Who runs it: db_owner, in sqlcmd or a query window (GO separates batches). Another schema: replace [chokaq] throughout,
-- and chokaq_Archive in the names of the function and the scheme.
--
-- Part 1 runs once. It rebuilds the table and its indexes: workers that finish a job wait meanwhile (a job is not lost,
-- its finish is repeated), so take an hour without work, or a new archive; on Enterprise, Developer and Azure SQL add
-- ONLINE = ON to the three CREATE INDEX.

SET ANSI_NULLS, QUOTED_IDENTIFIER, ANSI_WARNINGS, ANSI_PADDING, ARITHABORT, CONCAT_NULL_YIELDS_NULL ON;
SET NUMERIC_ROUNDABORT OFF;
SET XACT_ABORT ON;
GO

-- Part 1a: the boundaries, from the oldest day that is kept to a week ahead. RANGE RIGHT: a boundary is the first moment
-- of its partition. The first and the last partition stay empty for ever: only empty ones are split and merged for nothing.
IF NOT EXISTS (SELECT 1 FROM sys.partition_functions AS f WHERE f.name = N'PF_chokaq_Archive')
BEGIN
    DECLARE @days_each int = 1, @days_kept int = 8, @days_ahead int = 7;
    DECLARE @day datetime2(3) = DATEADD(day, -@days_kept, CONVERT(date, SYSUTCDATETIME())), @boundaries nvarchar(max) = N'', @sql nvarchar(max);
    DECLARE @last datetime2(3) = DATEADD(day, @days_ahead, CONVERT(date, SYSUTCDATETIME()));
    WHILE @day <= @last
    BEGIN
        SET @boundaries = CONCAT(@boundaries, CASE WHEN @boundaries = N'' THEN N'' ELSE N', ' END, N'''', CONVERT(nvarchar(30), @day, 126), N'''');
        SET @day = DATEADD(day, @days_each, @day);
    END;
    SET @sql = CONCAT(N'CREATE PARTITION FUNCTION PF_chokaq_Archive (datetime2(3)) AS RANGE RIGHT FOR VALUES (', @boundaries, N');');
    EXEC (@sql);
END;
IF NOT EXISTS (SELECT 1 FROM sys.partition_schemes AS s WHERE s.name = N'PS_chokaq_Archive')
    CREATE PARTITION SCHEME PS_chokaq_Archive AS PARTITION PF_chokaq_Archive ALL TO ([PRIMARY]);
GO

-- Part 1b: the indexes onto the scheme, under their names. The clustered one moves the rows; it keeps its key, so that it
-- stays the primary key.
CREATE UNIQUE CLUSTERED INDEX PK_JobsArchive ON [chokaq].JobsArchive (FinishedAtUtc, Id)
    WITH (DROP_EXISTING = ON, DATA_COMPRESSION = PAGE) ON PS_chokaq_Archive (FinishedAtUtc);
CREATE NONCLUSTERED INDEX IX_JobsArchive_Queue ON [chokaq].JobsArchive (Queue, FinishedAtUtc, Id)
    WITH (DROP_EXISTING = ON, DATA_COMPRESSION = PAGE) ON PS_chokaq_Archive (FinishedAtUtc);
-- No longer unique: see above.
CREATE NONCLUSTERED INDEX IX_JobsArchive_Id ON [chokaq].JobsArchive (Id)
    WITH (DROP_EXISTING = ON, DATA_COMPRESSION = PAGE) ON PS_chokaq_Archive (FinishedAtUtc);
GO

-- Part 2 runs every day, as a job of SQL Server Agent or of anything else that can run a batch. Days that are due to go
-- are emptied and merged away, and the window is kept a week ahead. The change of metadata needs the table for itself
-- for a moment: it waits 5 s for that at most, since everything else would queue behind it, and the next run finds what
-- this one left.
SET XACT_ABORT ON;
SET DEADLOCK_PRIORITY LOW;
SET LOCK_TIMEOUT 5000;
DECLARE @days_each int = 1, @days_kept int = 8, @days_ahead int = 7;
DECLARE @today datetime2(3) = CONVERT(date, SYSUTCDATETIME());
DECLARE @keep_from datetime2(3) = DATEADD(day, -@days_kept, @today), @ahead_to datetime2(3) = DATEADD(day, @days_ahead, @today);
DECLARE @function int, @second datetime2(3), @first datetime2(3), @newest datetime2(3), @next datetime2(3), @sql nvarchar(max);
SELECT @function = f.function_id FROM sys.partition_functions AS f WHERE f.name = N'PF_chokaq_Archive';

-- The oldest partition with rows ends where the second boundary begins. Partition 1 is empty, 2 begins at the first.
WHILE 1 = 1
BEGIN
    SELECT @first = MAX(CASE WHEN v.boundary_id = 1 THEN CONVERT(datetime2(3), v.value) END),
        @second = MAX(CASE WHEN v.boundary_id = 2 THEN CONVERT(datetime2(3), v.value) END)
    FROM sys.partition_range_values AS v
    WHERE v.function_id = @function;
    IF @second IS NULL OR @second > @keep_from
        BREAK;
    -- To keep the rows elsewhere, SWITCH them out here instead: part 3.
    TRUNCATE TABLE [chokaq].JobsArchive WITH (PARTITIONS (1 TO 2));
    ALTER PARTITION FUNCTION PF_chokaq_Archive() MERGE RANGE (@first);
END;

WHILE 1 = 1
BEGIN
    SELECT @newest = MAX(CONVERT(datetime2(3), v.value))
    FROM sys.partition_range_values AS v
    WHERE v.function_id = @function;
    IF @newest >= @ahead_to
        BREAK;
    -- A split of a partition that holds rows moves and logs them: this job has not run for a week. It catches up from
    -- today, and the rows since then stay together in one partition.
    SET @next = DATEADD(day, @days_each, @newest);
    IF @next <= @today
        SET @next = DATEADD(day, 1, @today);
    ALTER PARTITION SCHEME PS_chokaq_Archive NEXT USED [PRIMARY];
    ALTER PARTITION FUNCTION PF_chokaq_Archive() SPLIT RANGE (@next);
END;

-- What there is now.
SELECT p.partition_number, v.value AS begins_at, p.rows
FROM sys.partitions AS p
LEFT JOIN sys.partition_range_values AS v ON v.function_id = @function AND v.boundary_id = p.partition_number - 1
WHERE p.object_id = OBJECT_ID(N'[chokaq].JobsArchive') AND p.index_id = 1
ORDER BY p.partition_number;
GO

-- Part 3, where the rows are to be kept elsewhere: the partition becomes a table of its own, without copying. The table that
-- receives it has the same columns and the same clustered index, on the same filegroup, and is empty.
--
--     SELECT TOP (0) * INTO [chokaq].JobsArchiveOut FROM [chokaq].JobsArchive;
--     ALTER TABLE [chokaq].JobsArchiveOut ADD CONSTRAINT PK_JobsArchiveOut
--         PRIMARY KEY CLUSTERED (FinishedAtUtc, Id) WITH (DATA_COMPRESSION = PAGE);
--     ALTER TABLE [chokaq].JobsArchive SWITCH PARTITION 2 TO [chokaq].JobsArchiveOut;
--     ... copy it away, then: TRUNCATE TABLE [chokaq].JobsArchiveOut;
--
-- The way back: the three CREATE INDEX of part 1b with ON [PRIMARY] instead of the scheme, UNIQUE again for
-- IX_JobsArchive_Id; then DROP PARTITION SCHEME PS_chokaq_Archive; DROP PARTITION FUNCTION PF_chokaq_Archive.
