-- Caller: WorkerStorage::archive_zombies, with the rows that find_zombies chose in the same transaction.
-- Intent: Processing -> Pending at once, the attempt counted: their type said that it may run again after a crash.
-- Invariant: only rows that are still Processing and suspect. The LeaseId is cleared: whatever the old holder says of
--   this attempt is a lost lease.
-- Twin: the same, READPAST.
UPDATE JobsHot NOT INDEXED
SET Status = 0, IsReady = 1, WorkerId = NULL, LeaseId = NULL, FetchedAtUtc = NULL, StartedAtUtc = NULL,
    HeartbeatUtc = NULL, SuspectUtc = NULL, Progress = NULL, ProgressNote = NULL, ScheduledAtUtc = @now,
    Errors = json_insert(
        CASE
            WHEN Errors IS NULL OR NOT json_valid(Errors) THEN '[]'
            WHEN json_array_length(Errors) >= 25 THEN json_remove(Errors, '$[0]')
            ELSE Errors
        END,
        '$[#]',
        json_object(
            'attempt', AttemptCount, 'at_ms', @now, 'kind', 'zombie',
            'text', printf(
                'no heartbeat for %d s: the worker %s died, froze or lost the database',
                (@now - HeartbeatUtc) / 1000, WorkerId
            )
        )
    )
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND Status = 2 AND SuspectUtc IS NOT NULL;
