-- Caller: OperatorStorage::purge, and the retention keeper through it.
-- Intent: succeeded jobs that are old go, the oldest first.
-- Invariant: only rows of the age that was asked; no total changes. Looks at the first @batch rows in the order of
--   finishing and at no others: where the host's clock was once ahead, what finished then goes when its time has come.
-- Twin: SQL Server is clustered on the time, and skips locked rows.
DELETE FROM JobsArchive
WHERE Seq IN (SELECT Seq FROM JobsArchive ORDER BY Seq LIMIT @batch)
    AND FinishedAtUtc <= @before;
