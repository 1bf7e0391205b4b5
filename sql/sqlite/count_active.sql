-- Caller: fetch_next_batch and next_due, for each queue with a MaxWorkers limit that has work.
-- Intent: how many of the queue's rows are fetched or running, over all workers.
-- Invariant: MaxWorkers is never exceeded: the count and the claim stand in one write transaction.
-- Twin: SQL Server locks the queue's row first and counts in a later statement.
SELECT count(*) FROM JobsHot INDEXED BY IX_JobsHot_Active
WHERE Queue = @queue AND Status > 0;
