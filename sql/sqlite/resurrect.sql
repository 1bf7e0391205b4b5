-- Caller: OperatorStorage::resurrect, once per job and in the order of the call.
-- Intent: JobsDLQ -> Pending: attempts 0, a fresh lifetime, at the end of its queue; id, key, errors and whatever is not
--   edited stay.
-- Invariant: an active key is held once: where another active job holds it the insert does nothing, and so is not
--   followed by the delete. No total changes: what failed has failed.
-- Twin: SQL Server filters keys that are held, or repeated within the batch, before one set-based insert.
INSERT INTO JobsHot (
    Id, Queue, Type, Status, IsReady, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash,
    CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, IdempotencyKey, CreatedBy, Tags, Errors, Payload
)
SELECT
    Id, coalesce(@queue, Queue), Type, 0, 1, coalesce(@priority, Priority), 0, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash,
    CreatedAtUtc, @now, @now + MaxAgeMs, IdempotencyKey, CreatedBy, CASE WHEN @edits_tags THEN @tags ELSE Tags END,
    Errors, coalesce(@payload, Payload)
FROM JobsDLQ
WHERE Id = @id
ON CONFLICT DO NOTHING
RETURNING Queue;

DELETE FROM JobsDLQ WHERE Id = @id;
