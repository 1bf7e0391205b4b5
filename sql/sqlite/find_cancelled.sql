-- Caller: cancel, for the ids that no active job has.
-- Intent: a repeated cancel recognises its first run: dead as Cancelled, for the same stated reason.
-- Invariant: a job that died of anything else was not cancelled.
-- Twin: the same.
SELECT Id FROM JobsDLQ INDEXED BY IX_JobsDLQ_Id
WHERE Id IN (SELECT value FROM rarray(@ids))
    AND Reason = 'Cancelled' AND Error = @reason;
