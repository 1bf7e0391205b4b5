-- Caller: release, for the rows that its statement did not change.
-- Intent: a repeated release recognises its first run.
-- Invariant: Pending, and the last fetch was this one: rescue clears the LeaseId of what it takes back.
-- Twin: the same.
SELECT Seq, Id FROM JobsHot NOT INDEXED
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId IS NULL AND LeaseId = @lease AND Status = 0;
