-- Caller: fetch_next_batch, last.
-- Intent: when the next delayed row is due, of any queue: until then a fetcher may sleep.
-- Invariant: none to protect, it is a hint. One seek.
-- Twin: the same.
SELECT ScheduledAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Delayed
WHERE Status = 0 AND IsReady = 0
ORDER BY ScheduledAtUtc
LIMIT 1;
