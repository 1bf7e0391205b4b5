-- Caller: OperatorStorage::get_queue_health: the first statement, then the second per queue.
-- Intent: how far each active queue is behind, and how full it is.
-- Invariant: none to protect, it reads. Counts stop at a million.
-- Twin: SQL Server has IX_JobsHot_PendingLag; here the oldest row of a queue is found by one seek for each of its
--   priorities, as the fetch index orders by priority first; at most 1,000 of them are looked at.
WITH Overdue AS (
    -- Due, and not promoted by any fetch yet.
    SELECT Queue, count(*) AS Count, min(ScheduledAtUtc) AS Oldest
    FROM (
        SELECT Queue, ScheduledAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Delayed
        WHERE Status = 0 AND IsReady = 0 AND ScheduledAtUtc <= @now
        ORDER BY ScheduledAtUtc
        LIMIT 1000000
    )
    GROUP BY Queue
)
SELECT
    q.Name, q.MaxWorkers,
    (SELECT count(*) FROM (
        SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Fetch
        WHERE Queue = q.Name AND Status = 0 AND IsReady = 1
        LIMIT 1000000
    )) + coalesce(o.Count, 0) AS Ready,
    (SELECT count(*) FROM JobsHot INDEXED BY IX_JobsHot_Active WHERE Queue = q.Name AND Status > 0) AS Active,
    o.Oldest
FROM Queues AS q
LEFT JOIN Overdue AS o ON o.Queue = q.Name
WHERE q.IsActive = 1
ORDER BY q.Name;

WITH RECURSIVE Level (Seq, Priority, ScheduledAtUtc) AS (
    SELECT h.Seq, h.Priority, h.ScheduledAtUtc
    FROM JobsHot AS h NOT INDEXED
    WHERE h.Seq = (
            SELECT Seq FROM JobsHot INDEXED BY IX_JobsHot_Fetch
            WHERE Queue = @queue AND Status = 0 AND IsReady = 1
            ORDER BY Priority DESC, ScheduledAtUtc
            LIMIT 1
        )
    UNION ALL
    SELECT h.Seq, h.Priority, h.ScheduledAtUtc
    FROM Level AS l
    CROSS JOIN JobsHot AS h NOT INDEXED ON h.Seq = (
            SELECT Seq FROM JobsHot INDEXED BY IX_JobsHot_Fetch
            WHERE Queue = @queue AND Status = 0 AND IsReady = 1 AND Priority < l.Priority
            ORDER BY Priority DESC, ScheduledAtUtc
            LIMIT 1
        )
    LIMIT 1000
)
SELECT min(ScheduledAtUtc) FROM Level;
