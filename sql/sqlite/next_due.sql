-- Caller: WorkerStorage::next_due, after the heads of the served queues showed nothing that is ready: the first
--   statement gives the queues that count, the second walks the delayed rows.
-- Intent: the first delayed row of a queue that may be fetched, within the horizon.
-- Invariant: none to protect, it reads. The walk stops after 10,000 rows, by the index alone: the caller then takes the
--   last one's time, and asks again when it has come.
-- Twin: the same.
SELECT Name, MaxWorkers FROM Queues
WHERE IsPaused = 0 AND IsActive = 1;

SELECT ScheduledAtUtc, Queue FROM JobsHot INDEXED BY IX_JobsHot_Delayed
WHERE Status = 0 AND IsReady = 0 AND ScheduledAtUtc <= @until
ORDER BY ScheduledAtUtc
LIMIT 10000;
