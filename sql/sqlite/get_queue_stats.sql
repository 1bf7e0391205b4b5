-- Caller: OperatorStorage::get_queue_stats.
-- Intent: counts, totals and settings per queue.
-- Invariant: none to protect, it reads. Counts go by indexes alone and stop at a million (of one queue's ready rows, of
--   all delayed rows): a page needs to know that it is a million, not which.
-- Twin: SQL Server counts by IX_JobsHot_QueueStats.
-- A delayed row counts as ready from the moment it is due, also where no fetch has promoted it: without a worker, that is
-- what an operator has to see.
WITH
    Delayed AS (
        SELECT Queue, sum(ScheduledAtUtc > @now) AS Count, sum(ScheduledAtUtc <= @now) AS Overdue
        FROM (
            SELECT Queue, ScheduledAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Delayed
            WHERE Status = 0 AND IsReady = 0
            ORDER BY ScheduledAtUtc
            LIMIT 1000000
        )
        GROUP BY Queue
    ),
    Active AS (
        SELECT Queue, sum(Status = 1) AS Fetched, sum(Status = 2) AS Processing
        FROM JobsHot INDEXED BY IX_JobsHot_Active
        WHERE Status > 0
        GROUP BY Queue
    )
SELECT
    q.Name, q.IsPaused, q.IsActive, q.MaxWorkers, q.ZombieTimeoutMs,
    (SELECT count(*) FROM (
        SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Fetch
        WHERE Queue = q.Name AND Status = 0 AND IsReady = 1
        LIMIT 1000000
    )) + coalesce(d.Overdue, 0) AS Ready,
    coalesce(d.Count, 0) AS Delayed, coalesce(a.Fetched, 0) AS Fetched, coalesce(a.Processing, 0) AS Processing,
    coalesce(s.SucceededTotal, 0) AS SucceededTotal, coalesce(s.FailedTotal, 0) AS FailedTotal,
    coalesce(s.RetriedTotal, 0) AS RetriedTotal, s.LastActivityUtc
FROM Queues AS q
LEFT JOIN StatsSummary AS s ON s.Queue = q.Name
LEFT JOIN Delayed AS d ON d.Queue = q.Name
LEFT JOIN Active AS a ON a.Queue = q.Name
ORDER BY q.Name;
