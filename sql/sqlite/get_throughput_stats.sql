-- Caller: OperatorStorage::get_throughput_stats.
-- Intent: the buckets of a window, oldest first.
-- Invariant: none to protect, it reads: by the primary key, as much as the window holds.
-- Twin: SQL Server adds up the shards.
SELECT Queue, BucketUtc, Succeeded, Failed, DurationMs FROM MetricBuckets
WHERE BucketUtc >= @since
ORDER BY BucketUtc, Queue;
