-- Caller: WorkerStorage::finalise, once per lease and delay.
-- Intent: Processing -> Pending, the attempt given back, due again after the delay.
-- Invariant: only the holder. A row whose cancellation an operator asked for is refused here and goes to the
--   dead-letter queue in the same transaction. LeaseId stays, so that a repeated call recognises its own effect.
-- Twin: the same.
UPDATE JobsHot NOT INDEXED
SET Status = 0, WorkerId = NULL, FetchedAtUtc = NULL, StartedAtUtc = NULL, HeartbeatUtc = NULL, SuspectUtc = NULL,
    Progress = NULL, ProgressNote = NULL,
    ScheduledAtUtc = @due, IsReady = @due <= @now,
    AttemptCount = max(AttemptCount - 1, 0)
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 2
    AND CancelRequestedUtc IS NULL
RETURNING Id, Queue;
