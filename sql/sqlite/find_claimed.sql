-- Caller: fetch_next_batch, when an earlier call with the same LeaseId may have been committed.
-- Intent: the rows that it claimed, as it would have answered them.
-- Invariant: only rows of this worker and this lease that have not started. Walks the active rows: as many as the fleet
--   holds, and only after a lost reply.
-- Twin: the same.
SELECT
    Seq, Id, LeaseId, Queue, Type, Payload, Tags, Priority, AttemptCount, MaxRetries, TimeoutMs, CreatedAtUtc,
    ScheduledAtUtc, UnknownSinceUtc, DeadlineUtc
FROM JobsHot INDEXED BY IX_JobsHot_Active
WHERE Status > 0 AND Status = 1 AND WorkerId = @worker AND LeaseId = @lease;
