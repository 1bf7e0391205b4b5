-- Caller: WorkerStorage::recover_abandoned, from rescue.
-- Intent: rows that were fetched and not started for longer than the limit go back to Pending: their worker died with
--   them in its buffer. User code has not run, no attempt was used.
-- Invariant: only Fetched rows. The LeaseId is cleared: the old holder can neither start the row nor believe that it
--   gave it back itself. Walks the active rows only: as many as the fleet holds.
-- Twin: SQL Server has IX_JobsHot_FetchedRecovery, and skips locked rows.
UPDATE JobsHot NOT INDEXED
SET Status = 0, IsReady = 1, WorkerId = NULL, LeaseId = NULL, FetchedAtUtc = NULL
WHERE Seq IN (
        SELECT Seq FROM JobsHot INDEXED BY IX_JobsHot_Active
        WHERE Status > 0 AND Status = 1 AND FetchedAtUtc <= @before
        LIMIT @batch
    )
    AND Status = 1;
