-- Caller: OperatorStorage::purge, and the retention keeper through it.
-- Intent: dead jobs that are old go, the oldest first.
-- Invariant: only rows of the age that was asked; no total changes: what failed has failed. Looks at the first @batch
--   rows in the order of failing and at no others, as purge_archive does.
-- Twin: SQL Server is clustered on the time, and skips locked rows.
DELETE FROM JobsDLQ
WHERE Seq IN (SELECT Seq FROM JobsDLQ ORDER BY Seq LIMIT @batch)
    AND FailedAtUtc <= @before;
