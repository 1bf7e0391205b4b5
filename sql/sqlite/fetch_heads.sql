-- Caller: fetch_next_batch and next_due: the first statement for a worker that names its queues, the second for one
--   that serves all.
-- Intent: the first claimable row of each queue that may be fetched: how a batch is shared is decided by these.
-- Invariant: a paused or inactive queue has no head. Two seeks a queue, to one place of the index and to no row of
--   the table: the backlog's size does not matter.
-- Twin: SQL Server reads the heads without locks; here they stand in the claim's own transaction.
SELECT
    q.Name, q.MaxWorkers,
    (
        SELECT Priority FROM JobsHot INDEXED BY IX_JobsHot_Fetch
        WHERE Queue = q.Name AND Status = 0 AND IsReady = 1
        ORDER BY Priority DESC, ScheduledAtUtc, Seq
        LIMIT 1
    ) AS HeadPriority,
    (
        SELECT ScheduledAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Fetch
        WHERE Queue = q.Name AND Status = 0 AND IsReady = 1
        ORDER BY Priority DESC, ScheduledAtUtc, Seq
        LIMIT 1
    ) AS HeadScheduledAtUtc
FROM rarray(@queues) AS s
CROSS JOIN Queues AS q ON q.Name = s.value
WHERE q.IsPaused = 0 AND q.IsActive = 1 AND HeadPriority IS NOT NULL;

SELECT
    q.Name, q.MaxWorkers,
    (
        SELECT Priority FROM JobsHot INDEXED BY IX_JobsHot_Fetch
        WHERE Queue = q.Name AND Status = 0 AND IsReady = 1
        ORDER BY Priority DESC, ScheduledAtUtc, Seq
        LIMIT 1
    ) AS HeadPriority,
    (
        SELECT ScheduledAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Fetch
        WHERE Queue = q.Name AND Status = 0 AND IsReady = 1
        ORDER BY Priority DESC, ScheduledAtUtc, Seq
        LIMIT 1
    ) AS HeadScheduledAtUtc
FROM Queues AS q
WHERE q.IsPaused = 0 AND q.IsActive = 1 AND HeadPriority IS NOT NULL;
