-- Caller: OperatorStorage::get_queue_stats.
-- Intent: counts, totals and settings per queue.
-- Invariant: none to protect, it reads. Counts go by indexes alone, pass over locked rows and stop at a million (of
--   one queue's ready rows, of all delayed rows).
-- Twin: active rows by IX_JobsHot_QueueStats; adds up the shards.
-- Locks: none kept: READPAST.
-- Retry: safe, it reads.
-- Answers: a row per queue, by name.
SET NOCOUNT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @delayed TABLE (Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, Delayed bigint NOT NULL, Overdue bigint NOT NULL, OldestUtc datetime2(3) NULL);

-- A delayed row counts as ready from the moment it is due, also where no fetch has promoted it.
INSERT /* chokaq:get_queue_stats */ INTO @delayed (Queue, Delayed, Overdue, OldestUtc)
SELECT
    d.Queue, COUNT_BIG(CASE WHEN d.ScheduledAtUtc > @now THEN 1 END), COUNT_BIG(CASE WHEN d.ScheduledAtUtc <= @now THEN 1 END),
    MIN(d.ScheduledAtUtc)
FROM (
    SELECT TOP (1000000) h.Queue, h.ScheduledAtUtc
    FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Delayed), ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE h.Status = 0 AND h.IsReady = 0
    ORDER BY h.ScheduledAtUtc
) AS d
GROUP BY d.Queue
OPTION (MAXDOP 1, KEEPFIXED PLAN);

SELECT /* chokaq:get_queue_stats */
    q.Name, q.IsPaused, q.IsActive, q.MaxWorkers, q.ZombieTimeoutMs,
    r.Ready + COALESCE(d.Overdue, 0) AS Ready, COALESCE(d.Delayed, 0) AS Delayed, a.Fetched, a.Processing,
    COALESCE(t.SucceededTotal, 0) AS SucceededTotal, COALESCE(t.FailedTotal, 0) AS FailedTotal,
    COALESCE(t.RetriedTotal, 0) AS RetriedTotal, DATEDIFF_BIG(millisecond, '19700101', t.LastActivityUtc) AS LastActivityMs
FROM [chokaq].Queues AS q
LEFT JOIN @delayed AS d ON d.Queue = q.Name
OUTER APPLY (
    SELECT SUM(s.SucceededTotal) AS SucceededTotal, SUM(s.FailedTotal) AS FailedTotal, SUM(s.RetriedTotal) AS RetriedTotal,
        MAX(s.LastActivityUtc) AS LastActivityUtc
    FROM [chokaq].StatsSummary AS s
    WHERE s.Queue = q.Name
) AS t
OUTER APPLY (
    SELECT COUNT_BIG(*) AS Ready
    FROM (
        SELECT TOP (1000000) 1 AS One
        FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_PendingLag), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
        WHERE h.Queue = q.Name AND h.Status = 0 AND h.IsReady = 1
    ) AS c
) AS r
OUTER APPLY (
    SELECT COUNT_BIG(CASE WHEN h.Status = 1 THEN 1 END) AS Fetched, COUNT_BIG(CASE WHEN h.Status = 2 THEN 1 END) AS Processing
    FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_QueueStats), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE h.Queue = q.Name AND h.Status > 0
) AS a
ORDER BY q.Name
OPTION (MAXDOP 1, KEEPFIXED PLAN);
