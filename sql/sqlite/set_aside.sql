-- Caller: fetch_next_batch, for rows of its claim that this binary cannot read (a value that it would not have written).
-- Intent: out of the way for an hour, in JobsHot where a person can see and mend them; the log names row and column.
-- Invariant: only rows of this claim; nothing is lost, and one bad row never holds up its queue.
-- Twin: none: SQL Server's column types leave no value that cannot be read.
UPDATE JobsHot NOT INDEXED
SET Status = 0, IsReady = 0, WorkerId = NULL, FetchedAtUtc = NULL, ScheduledAtUtc = @due
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 1;
