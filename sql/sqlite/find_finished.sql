-- Caller: finalise, for each job that was not this lease's any more.
-- Intent: whether an earlier run of the same call did it: its reply may have been lost.
-- Invariant: the LeaseId is compared everywhere; in the dead-letter queue the caller compares the reason too, because
--   rescue moves a row with its LeaseId. What rescue puts back to Pending carries none.
-- Twin: the same.
SELECT
    EXISTS (SELECT 1 FROM JobsArchive WHERE Id = @id AND LeaseId = @lease) AS IsArchived,
    (SELECT Reason FROM JobsDLQ WHERE Id = @id AND LeaseId = @lease) AS DeadReason,
    EXISTS (SELECT 1 FROM JobsHot WHERE Id = @id AND LeaseId = @lease AND WorkerId IS NULL AND Status = 0) AS IsPending;
