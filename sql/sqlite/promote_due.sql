-- Caller: fetch_next_batch, first.
-- Intent: delayed rows whose time has come join the ready ones, at most 1,000 a call.
-- Invariant: only Pending rows, and none before its time. A seek when nothing is due, however many rows are delayed.
-- Twin: SQL Server does the same with READPAST, so that fetchers promote different rows.
UPDATE JobsHot NOT INDEXED
SET IsReady = 1
WHERE Seq IN (
        SELECT Seq FROM JobsHot INDEXED BY IX_JobsHot_Delayed
        WHERE Status = 0 AND IsReady = 0 AND ScheduledAtUtc <= @now
        ORDER BY ScheduledAtUtc
        LIMIT 1000
    )
    AND Status = 0;
