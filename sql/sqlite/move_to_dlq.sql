-- Caller: WorkerStorage::finalise, once per lease and failure; and for the retries and snoozes that their statement
--   refused (then @reason is NULL and the row says why: an operator's cancel, or the deadline).
-- Intent: Processing -> JobsDLQ, with the attempt's error added to those before it (the newest 25 are kept).
-- Invariant: one transaction; both statements repeat the whole guard, so what is deleted is what was copied, and a
--   worker that lost its lease moves nothing. Errors that are no JSON any more are begun anew: they strand no job.
-- Twin: SQL Server deletes with OUTPUT into a table variable and inserts from it.
INSERT INTO JobsDLQ (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, FailedAtUtc, Reason, Error, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors,
    Payload
)
SELECT
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, @now,
    coalesce(@reason, CASE WHEN CancelRequestedUtc IS NULL THEN 'RetryLifetimeExpired' ELSE 'Cancelled' END),
    @error_text, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags,
    json_insert(
        CASE
            WHEN Errors IS NULL OR NOT json_valid(Errors) THEN '[]'
            WHEN json_array_length(Errors) >= 25 THEN json_remove(Errors, '$[0]')
            ELSE Errors
        END,
        '$[#]',
        json_object(
            'attempt', coalesce(@error_attempt, AttemptCount), 'at_ms', @now, 'kind', @error_kind, 'text', @error_text
        )
    ),
    Payload
FROM JobsHot NOT INDEXED
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 2
RETURNING Id, Queue, Reason;

DELETE FROM JobsHot NOT INDEXED
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 2;
