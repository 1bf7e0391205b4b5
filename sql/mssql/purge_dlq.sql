-- Caller: OperatorStorage::purge, at most 4,000 rows a call: 5,000 locks would become one on the table.
-- Intent: dead jobs that are old go, the oldest first.
-- Invariant: only rows of the age that was asked; no total changes: what failed has failed. A seek to the oldest row and a
--   walk from there: what is young is not read.
-- Twin: SQLite goes by Seq, the order of failing, and looks at the first rows only.
-- Locks: DLQ. READPAST: a row that another statement has locked is left to a later purge. The delete then takes
--   the rows' keys in the other indexes, which a resurrect locks before the row: in a deadlock the purge gives way.
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

DELETE /* chokaq:purge_dlq */ a
FROM (
    SELECT TOP (@batch) o.FailedAtUtc, o.Id
    FROM [chokaq].JobsDLQ AS o
        WITH (INDEX(PK_JobsDLQ), FORCESEEK, UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE o.FailedAtUtc <= @before
    ORDER BY o.FailedAtUtc, o.Id
) AS i
INNER LOOP JOIN [chokaq].JobsDLQ AS a WITH (INDEX(PK_JobsDLQ), FORCESEEK, ROWLOCK)
    ON a.FailedAtUtc = i.FailedAtUtc AND a.Id = i.Id
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
SET @purged = @@ROWCOUNT;

SELECT @purged AS Purged;
