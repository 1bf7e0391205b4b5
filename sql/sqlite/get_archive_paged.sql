-- Caller: OperatorStorage::get_archive_paged: the first statement for all queues, the second for one; the third and fourth
--   find where a page starts.
-- Intent: Succeeded jobs, newest first, by keyset: a page deep in history costs what the first one does.
-- Invariant: none to protect, it reads: at most a page. Rows are numbered as they come, so Seq orders by time. A cursor
--   whose row has left the table starts the page by its time instead, which the caller finds by halving.
-- Twin: SQL Server is clustered on (FinishedAtUtc, Id) and seeks to the cursor itself.
SELECT Id, Queue, Type, Tags, AttemptCount, CreatedAtUtc, StartedAtUtc, FinishedAtUtc, WorkerId, Output
FROM JobsArchive
WHERE Seq < @before
ORDER BY Seq DESC
LIMIT @limit;

SELECT Id, Queue, Type, Tags, AttemptCount, CreatedAtUtc, StartedAtUtc, FinishedAtUtc, WorkerId, Output
FROM JobsArchive INDEXED BY IX_JobsArchive_Queue
WHERE Queue = @queue AND Seq < @before
ORDER BY Seq DESC
LIMIT @limit;

SELECT Seq FROM JobsArchive WHERE Id = @id;

SELECT Seq, FinishedAtUtc FROM JobsArchive
WHERE Seq >= @seq
ORDER BY Seq
LIMIT 1;
