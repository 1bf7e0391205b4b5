-- Caller: fetch_next_batch, when an earlier call with the same LeaseId may have been committed; before the claim is
--   made again.
-- Intent: the rows that it claimed, as it would have answered them.
-- Invariant: only rows of this worker and this lease that have not started. A claim that is still running on an
--   abandoned connection may add rows after this look: they are given back by recover_abandoned, no attempt is used.
-- Twin: walks the index of the fetched rows (as many as the fleet buffers) and waits for those that are locked.
-- Locks: Hot. Waits for one row at a time and keeps no lock; the rows are read in a second statement, so that no lock
--   on an index is held while a row is waited for.
-- Retry: safe, it reads.
-- @worker nvarchar(255)
-- @lease uniqueidentifier
-- Answers: the rows, as the third set of fetch_next_batch without its last two columns.
SET NOCOUNT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @claimed TABLE (Seq bigint NOT NULL PRIMARY KEY);

INSERT /* chokaq:find_claimed */ INTO @claimed (Seq)
SELECT h.Seq
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_FetchedRecovery), ROWLOCK, READCOMMITTEDLOCK)
WHERE h.Status = 1 AND h.WorkerId = @worker AND h.LeaseId = @lease
OPTION (MAXDOP 1, KEEPFIXED PLAN);

SELECT /* chokaq:find_claimed */
    h.Seq, h.Id, h.LeaseId, h.Queue, h.Type, h.Payload, h.Tags, h.Priority, h.AttemptCount, h.MaxRetries, h.TimeoutMs,
    DATEDIFF_BIG(millisecond, '19700101', h.CreatedAtUtc) AS CreatedAtMs,
    DATEDIFF_BIG(millisecond, '19700101', h.ScheduledAtUtc) AS ScheduledAtMs,
    DATEDIFF_BIG(millisecond, h.UnknownSinceUtc, @now) AS UnknownForMs,
    DATEDIFF_BIG(millisecond, @now, h.DeadlineUtc) AS ExpiresInMs
FROM @claimed AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.Status = 1 AND h.WorkerId = @worker AND h.LeaseId = @lease
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
