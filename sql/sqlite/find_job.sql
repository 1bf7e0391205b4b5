-- Caller: OperatorStorage::find_job.
-- Intent: everything known of one job, wherever it stands.
-- Invariant: one statement, so that a job on its way from one table to the next is not missed.
-- Twin: the same.
SELECT
    0 AS Place, Status, NULL AS Reason, Id, Queue, Type, Payload, Tags, IdempotencyKey, CreatedBy, Priority,
    AttemptCount, MaxRetries, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, StartedAtUtc, NULL AS FinishedAtUtc, WorkerId,
    CancelRequestedUtc, Progress, ProgressNote, NULL AS Output, NULL AS OutputNote, Errors
FROM JobsHot WHERE Id = @id
UNION ALL
SELECT
    1, NULL, NULL, Id, Queue, Type, Payload, Tags, IdempotencyKey, CreatedBy, Priority,
    AttemptCount, MaxRetries, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, StartedAtUtc, FinishedAtUtc, WorkerId,
    NULL, NULL, NULL, Output, OutputNote, Errors
FROM JobsArchive WHERE Id = @id
UNION ALL
SELECT
    2, NULL, Reason, Id, Queue, Type, Payload, Tags, IdempotencyKey, CreatedBy, Priority,
    AttemptCount, MaxRetries, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, StartedAtUtc, FailedAtUtc, WorkerId,
    NULL, NULL, NULL, NULL, NULL, Errors
FROM JobsDLQ WHERE Id = @id;
