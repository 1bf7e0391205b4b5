-- Caller: WorkerStorage::read_control, once a second per worker: the first statement for a worker that names its
--   queues, the second for one that serves all, the third for both.
-- Intent: the queues that may not be fetched or started now or have a lease of their own, and the running jobs of this
--   worker that an operator wants cancelled.
-- Invariant: none to protect, it reads. Queues are few; the active rows are as many as the fleet holds.
-- Twin: SQL Server answers it with the fetch when one is due.
SELECT q.Name, q.IsPaused = 1 OR q.IsActive = 0 AS IsStopped, q.ZombieTimeoutMs
FROM rarray(@queues) AS s
CROSS JOIN Queues AS q ON q.Name = s.value
WHERE q.IsPaused = 1 OR q.IsActive = 0 OR q.ZombieTimeoutMs IS NOT NULL;

SELECT Name, IsPaused = 1 OR IsActive = 0 AS IsStopped, ZombieTimeoutMs FROM Queues
WHERE IsPaused = 1 OR IsActive = 0 OR ZombieTimeoutMs IS NOT NULL;

SELECT Id FROM JobsHot INDEXED BY IX_JobsHot_Active
WHERE Status > 0 AND Status = 2 AND WorkerId = @worker AND CancelRequestedUtc IS NOT NULL;
