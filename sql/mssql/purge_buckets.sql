-- Caller: OperatorStorage::purge, at most 4,000 rows a call: 5,000 locks would become one on the table.
-- Intent: buckets that are old go, the oldest first.
-- Invariant: only buckets of the age that was asked; the lifetime totals stand in StatsSummary and stay.
-- Twin: a row for each shard, and locked rows are skipped.
-- Locks: Buckets. READPAST: a row that another statement has locked is left to a later purge. Nothing waits for a
--   bucket but the completions of its own 10 s.
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

DELETE /* chokaq:purge_buckets */ a
FROM (
    SELECT TOP (@batch) o.BucketUtc, o.Queue, o.Shard
    FROM [chokaq].MetricBuckets AS o
        WITH (INDEX(PK_MetricBuckets), FORCESEEK, UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE o.BucketUtc <= @before
    ORDER BY o.BucketUtc, o.Queue, o.Shard
) AS i
INNER LOOP JOIN [chokaq].MetricBuckets AS a WITH (INDEX(PK_MetricBuckets), FORCESEEK, ROWLOCK)
    ON a.BucketUtc = i.BucketUtc AND a.Queue = i.Queue AND a.Shard = i.Shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
SET @purged = @@ROWCOUNT;

SELECT @purged AS Purged;
