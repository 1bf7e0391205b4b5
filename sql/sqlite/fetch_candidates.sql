-- Caller: fetch_next_batch, for each queue that has a share in the batch.
-- Intent: the next rows of one queue and the bytes of their payloads (from the row's header: no payload is read).
-- Invariant: priority is strict within a queue; exactly the rows that will be claimed are walked.
-- Twin: SQL Server claims by this walk itself, under UPDLOCK and READPAST.
SELECT Seq, octet_length(Payload) FROM JobsHot INDEXED BY IX_JobsHot_Fetch
WHERE Queue = @queue AND Status = 0 AND IsReady = 1
ORDER BY Priority DESC, ScheduledAtUtc, Seq
LIMIT @take OFFSET @skip;
