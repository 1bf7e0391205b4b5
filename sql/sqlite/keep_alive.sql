-- Caller: WorkerStorage::keep_alive, once per lease and call, and once per job with news of its progress.
-- Intent: the heartbeat is renewed and a suspicion cleared; a cancel that an operator asked for comes back with it.
-- Invariant: only the holder renews; a row that does not come back is lost.
-- Twin: SQL Server skips locked rows, and says lost only after a second, locking read.
UPDATE JobsHot NOT INDEXED
SET HeartbeatUtc = @now, SuspectUtc = NULL,
    Progress = coalesce(@progress, Progress),
    ProgressNote = CASE WHEN @progress IS NULL THEN ProgressNote ELSE @note END
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 2
RETURNING Seq, Id, CancelRequestedUtc IS NOT NULL AS IsCancelRequested;
