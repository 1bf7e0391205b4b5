-- Caller: OperatorStorage::get_summary_stats.
-- Intent: counts over all queues and the lifetime totals.
-- Invariant: none to protect, it reads. Counts go by indexes alone, pass over locked rows and stop at a million each.
-- Twin: active rows by IX_JobsHot_QueueStats; adds up the shards.
-- Locks: none kept: READPAST.
-- Retry: safe, it reads.
-- Answers: Pending, Fetched, Processing, SucceededTotal, FailedTotal, RetriedTotal, Dead.
SET NOCOUNT ON;

SELECT /* chokaq:get_summary_stats */
    (SELECT COUNT_BIG(*) FROM (
        SELECT TOP (1000000) 1 AS One FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_PendingLag), ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE h.Status = 0 AND h.IsReady = 1
    ) AS c)
    + (SELECT COUNT_BIG(*) FROM (
        SELECT TOP (1000000) 1 AS One FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Delayed), ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE h.Status = 0 AND h.IsReady = 0
    ) AS c) AS Pending,
    (SELECT COUNT_BIG(*) FROM (
        SELECT TOP (1000000) 1 AS One FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_QueueStats), ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE h.Status > 0 AND h.Status = 1
    ) AS c) AS Fetched,
    (SELECT COUNT_BIG(*) FROM (
        SELECT TOP (1000000) 1 AS One FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_QueueStats), ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE h.Status > 0 AND h.Status = 2
    ) AS c) AS Processing,
    (SELECT COALESCE(SUM(s.SucceededTotal), 0) FROM [chokaq].StatsSummary AS s) AS SucceededTotal,
    (SELECT COALESCE(SUM(s.FailedTotal), 0) FROM [chokaq].StatsSummary AS s) AS FailedTotal,
    (SELECT COALESCE(SUM(s.RetriedTotal), 0) FROM [chokaq].StatsSummary AS s) AS RetriedTotal,
    (SELECT COUNT_BIG(*) FROM (SELECT TOP (1000000) 1 AS One FROM [chokaq].JobsDLQ AS d WITH (INDEX(IX_JobsDLQ_Id))) AS c) AS Dead
OPTION (MAXDOP 1, KEEPFIXED PLAN);
