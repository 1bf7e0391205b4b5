-- Caller: fetch_next_batch, last: the first statement for a worker that names its queues, the second for one that serves all.
-- Intent: when the next delayed row is due: until then a fetcher may sleep.
-- Invariant: none to protect, it is a hint. At most 100 entries of the index are looked at, and no row: a worker is not woken
--   by what it does not serve, and finds its own row by the poll where a hundred others come before it.
-- Twin: the same.
SELECT min(ScheduledAtUtc)
FROM (
    SELECT ScheduledAtUtc, Queue FROM JobsHot INDEXED BY IX_JobsHot_Delayed
    WHERE Status = 0 AND IsReady = 0
    ORDER BY ScheduledAtUtc
    LIMIT 100
)
WHERE Queue IN (SELECT value FROM rarray(@queues));

SELECT ScheduledAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Delayed
WHERE Status = 0 AND IsReady = 0
ORDER BY ScheduledAtUtc
LIMIT 1;
