-- Caller: whatever ends the activity of rows, once per queue and call.
-- Intent: whether that made room in a full queue, so that fetchers are woken.
-- Invariant: none to protect, it is a hint.
-- Twin: not needed on SQL Server, where a wake-up does not reach other processes.
SELECT EXISTS (SELECT 1 FROM Queues WHERE Name = @queue AND MaxWorkers IS NOT NULL);
