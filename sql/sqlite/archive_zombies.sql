-- Caller: WorkerStorage::archive_zombies, with the rows that find_zombies chose in the same transaction.
-- Intent: Processing -> JobsDLQ: user code may have had effects, a person decides. The reason is Zombie, or Cancelled
--   where an operator had asked for that (the error still says that the worker died).
-- Invariant: one transaction; both statements compare the status and the suspicion, so what is deleted is what was
--   copied, and a row that beat again stays. The LeaseId goes with it: a late worker finds it with another reason.
-- Twin: SQL Server deletes with OUTPUT into a table variable and inserts from it, READPAST.
INSERT INTO JobsDLQ (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, FailedAtUtc, Reason, Error, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors,
    Payload
)
SELECT
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, @now,
    CASE WHEN CancelRequestedUtc IS NULL THEN 'Zombie' ELSE 'Cancelled' END,
    printf(
        'no heartbeat for %d s: the worker %s died, froze or lost the database',
        (@now - HeartbeatUtc) / 1000, WorkerId
    ),
    WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags,
    json_insert(
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
    ),
    Payload
FROM JobsHot NOT INDEXED
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND Status = 2 AND SuspectUtc IS NOT NULL;

DELETE FROM JobsHot NOT INDEXED
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND Status = 2 AND SuspectUtc IS NOT NULL;
