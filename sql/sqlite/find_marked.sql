-- Caller: mark_as_processing, for the rows that its statement did not change.
-- Intent: a repeated mark recognises its first run: same attempt, same start; the heartbeat is renewed.
-- Invariant: only rows of this worker and this lease that are Processing; nothing is counted twice.
-- Twin: the same.
UPDATE JobsHot NOT INDEXED
SET HeartbeatUtc = @now, SuspectUtc = NULL
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 2
RETURNING Seq, Id, AttemptCount, StartedAtUtc;
