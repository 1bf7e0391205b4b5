-- Caller: OperatorStorage::get_throughput_stats.
-- Intent: the buckets of a window, oldest first.
-- Invariant: none to protect, it reads: by the primary key, as much as the window holds.
-- Twin: adds up the shards.
-- Locks: none kept.
-- Retry: safe, it reads.
-- @window_ms bigint
-- Answers: Queue, BucketMs, Succeeded, Failed, DurationMs.
SET NOCOUNT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @since datetime2(3) = DATEADD(millisecond, -(@window_ms % 1000), DATEADD(second, -CONVERT(int, @window_ms / 1000), @now));

SELECT /* chokaq:get_throughput_stats */
    b.Queue, DATEDIFF_BIG(millisecond, '19700101', b.BucketUtc) AS BucketMs, SUM(b.Succeeded) AS Succeeded, SUM(b.Failed) AS Failed,
    SUM(b.DurationMs) AS DurationMs
FROM [chokaq].MetricBuckets AS b WITH (INDEX(PK_MetricBuckets), FORCESEEK)
WHERE b.BucketUtc >= @since
GROUP BY b.BucketUtc, b.Queue
ORDER BY b.BucketUtc, b.Queue
OPTION (MAXDOP 1, KEEPFIXED PLAN);
