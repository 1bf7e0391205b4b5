-- Caller: OperatorStorage::get_summary_stats.
-- Intent: counts over all queues and the lifetime totals.
-- Invariant: none to protect, it reads. Counts go by indexes alone and stop at a million each: a page needs to know
--   that it is a million, not which.
-- Twin: SQL Server counts by IX_JobsHot_QueueStats.
SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Fetch WHERE Status = 0 AND IsReady = 1 LIMIT 1000000
    )) + (SELECT count(*) FROM (
        SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Delayed WHERE Status = 0 AND IsReady = 0 LIMIT 1000000
    )) AS Pending,
    (SELECT count(*) FROM JobsHot INDEXED BY IX_JobsHot_Active WHERE Status > 0 AND Status = 1) AS Fetched,
    (SELECT count(*) FROM JobsHot INDEXED BY IX_JobsHot_Active WHERE Status > 0 AND Status = 2) AS Processing,
    (SELECT coalesce(sum(SucceededTotal), 0) FROM StatsSummary) AS SucceededTotal,
    (SELECT coalesce(sum(FailedTotal), 0) FROM StatsSummary) AS FailedTotal,
    (SELECT coalesce(sum(RetriedTotal), 0) FROM StatsSummary) AS RetriedTotal,
    (SELECT count(*) FROM (SELECT 1 FROM JobsDLQ INDEXED BY IX_JobsDLQ_Queue LIMIT 1000000)) AS Dead;
