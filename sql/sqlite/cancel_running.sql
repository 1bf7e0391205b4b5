-- Caller: OperatorStorage::cancel.
-- Intent: a running row is flagged; its worker hears of it with its next control read or heartbeat.
-- Invariant: only Processing rows; the first request's time stays.
-- Twin: the same.
UPDATE JobsHot INDEXED BY IX_JobsHot_Id
SET CancelRequestedUtc = coalesce(CancelRequestedUtc, @now)
WHERE Id IN (SELECT value FROM rarray(@ids))
    AND Status = 2
RETURNING Id;
