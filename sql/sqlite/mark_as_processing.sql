-- Caller: WorkerStorage::mark_as_processing, once per lease and call.
-- Intent: Fetched -> Processing, the attempt counted: the last guard before user code.
-- Invariant: a row that was released, recovered, cancelled or claimed again is not this lease's any more, does not
--   change, and its user code does not run.
-- Twin: SQL Server takes (Seq, lease) pairs as JSON.
UPDATE JobsHot NOT INDEXED
SET Status = 2, AttemptCount = AttemptCount + 1, StartedAtUtc = @now, HeartbeatUtc = @now, SuspectUtc = NULL,
    UnknownSinceUtc = NULL, Progress = NULL, ProgressNote = NULL
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 1
RETURNING Seq, Id, AttemptCount, StartedAtUtc;
