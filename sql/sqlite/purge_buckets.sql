-- Caller: OperatorStorage::purge, and the retention keeper through it.
-- Intent: buckets that are old go, the oldest first.
-- Invariant: only buckets of the age that was asked; the lifetime totals stand in StatsSummary and stay.
-- Twin: SQL Server has a row for each shard, and skips locked rows.
DELETE FROM MetricBuckets
WHERE (BucketUtc, Queue) IN (
        SELECT BucketUtc, Queue FROM MetricBuckets
        WHERE BucketUtc <= @before
        ORDER BY BucketUtc, Queue
        LIMIT @batch
    );
