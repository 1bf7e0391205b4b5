-- Caller: whatever moves rows out of JobsHot or retries them, once per queue and call; the second statement only where
--   something left JobsHot.
-- Intent: lifetime totals and the bucket of 10 s, in the transaction of the moves that they count.
-- Invariant: they only ever grow.
-- Twin: SQL Server spreads both over shards, or every completion would wait for the one before it.
INSERT INTO StatsSummary (Queue, SucceededTotal, FailedTotal, RetriedTotal, LastActivityUtc)
VALUES (@queue, @succeeded, @failed, @retried, @now)
ON CONFLICT (Queue) DO UPDATE SET
    SucceededTotal = SucceededTotal + excluded.SucceededTotal,
    FailedTotal = FailedTotal + excluded.FailedTotal,
    RetriedTotal = RetriedTotal + excluded.RetriedTotal,
    LastActivityUtc = excluded.LastActivityUtc;

INSERT INTO MetricBuckets (BucketUtc, Queue, Succeeded, Failed, DurationMs)
VALUES (@bucket, @queue, @succeeded, @failed, @duration_ms)
ON CONFLICT (BucketUtc, Queue) DO UPDATE SET
    Succeeded = Succeeded + excluded.Succeeded,
    Failed = Failed + excluded.Failed,
    DurationMs = DurationMs + excluded.DurationMs;
