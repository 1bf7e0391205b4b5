-- Caller: OperatorStorage::cancel.
-- Intent: Pending or Fetched -> JobsDLQ as Cancelled, at once: user code has not run in this attempt.
-- Invariant: one transaction; both statements compare the status. The worker that fetched the row finds nothing to mark.
-- Twin: SQL Server deletes with OUTPUT into a table variable and inserts from it.
INSERT INTO JobsDLQ (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, FailedAtUtc, Reason, Error, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors,
    Payload
)
SELECT
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, @now, 'Cancelled', @reason, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags,
    json_insert(
        CASE
            WHEN Errors IS NULL OR NOT json_valid(Errors) THEN '[]'
            WHEN json_array_length(Errors) >= 25 THEN json_remove(Errors, '$[0]')
            ELSE Errors
        END,
        '$[#]',
        json_object(
            'attempt', AttemptCount, 'at_ms', @now, 'kind', 'cancelled', 'text', @reason
        )
    ),
    Payload
FROM JobsHot INDEXED BY IX_JobsHot_Id
WHERE Id IN (SELECT value FROM rarray(@ids))
    AND Status IN (0, 1)
RETURNING Id, Queue;

DELETE FROM JobsHot INDEXED BY IX_JobsHot_Id
WHERE Id IN (SELECT value FROM rarray(@ids))
    AND Status IN (0, 1);
