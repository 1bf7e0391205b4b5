-- Caller: enqueue, resurrect (into another queue) and set_queue, once per queue and call.
-- Intent: the queue's settings and totals exist before a row names it.
-- Invariant: an existing row is left as it is: the settings are the operator's, the totals never go down.
-- Twin: SQL Server reads first and inserts what is missing in a statement of its own, so that an enqueue holds no lock.
INSERT INTO Queues (Name, UpdatedAtUtc) VALUES (@queue, @now)
ON CONFLICT DO NOTHING;

INSERT INTO StatsSummary (Queue) VALUES (@queue)
ON CONFLICT DO NOTHING;
