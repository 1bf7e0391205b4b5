-- Caller: WorkerStorage::release, once per lease and kind of release.
-- Intent: Fetched -> Pending: user code has not run, no attempt is used. With a delay it is due again later; for an
--   unknown type the row keeps since when it has gone round.
-- Invariant: only the holder gives back. LeaseId stays, so that a repeated call recognises its own effect.
-- Twin: the same.
UPDATE JobsHot NOT INDEXED
SET Status = 0, WorkerId = NULL, FetchedAtUtc = NULL,
    ScheduledAtUtc = coalesce(@due, ScheduledAtUtc),
    IsReady = @due IS NULL OR @due <= @now,
    UnknownSinceUtc = CASE WHEN @is_unknown THEN coalesce(UnknownSinceUtc, @now) ELSE UnknownSinceUtc END
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 1
RETURNING Seq, Id;
