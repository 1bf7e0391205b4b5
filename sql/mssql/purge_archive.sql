-- Caller: OperatorStorage::purge, at most 4,000 rows a call: 5,000 locks would become one on the table.
-- Intent: succeeded jobs that are old go, the oldest first.
-- Invariant: only rows of the age that was asked; no total changes. One statement, a seek to the oldest row and a walk from
--   there: what is young is not read.
-- Twin: SQLite goes by Seq, the order of finishing, and looks at the first rows only.
-- Locks: Archive. READPAST: a row that another statement has locked is left to a later purge. The delete then takes
--   the rows' keys in the other indexes, which readers hold for moments; in a deadlock it gives way.
-- Retry: safe: a repeat deletes what is still old, or nothing.
-- @age_ms bigint
-- @batch int
-- Answers: Purged, a count.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
SET DEADLOCK_PRIORITY LOW;
DECLARE @before datetime2(3) = DATEADD(millisecond, -(@age_ms % 1000), DATEADD(second, -CONVERT(int, @age_ms / 1000), @now));
DECLARE @purged int;

DELETE /* chokaq:purge_archive */ a
FROM (
    SELECT TOP (@batch) o.FinishedAtUtc, o.Id
    FROM [chokaq].JobsArchive AS o
        WITH (INDEX(PK_JobsArchive), FORCESEEK, UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE o.FinishedAtUtc <= @before
    ORDER BY o.FinishedAtUtc, o.Id
) AS i
INNER LOOP JOIN [chokaq].JobsArchive AS a WITH (INDEX(PK_JobsArchive), FORCESEEK, ROWLOCK)
    ON a.FinishedAtUtc = i.FinishedAtUtc AND a.Id = i.Id
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
SET @purged = @@ROWCOUNT;

SELECT @purged AS Purged;
