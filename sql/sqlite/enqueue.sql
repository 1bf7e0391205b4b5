-- Caller: ProducerStorage::enqueue, the first statement once per job; the second only where the first inserted nothing.
-- Intent: a Pending row, or the reason why there is none.
-- Invariant: a job is in one table only (a repeated call may come when its job has finished already), and an active
--   key of a type is held once. The unique indexes on Id and on (Type, IdempotencyKey) decide, in the same statement.
-- Twin: SQL Server inserts the whole batch from JSON, and looks for the ids in history in the same transaction.
INSERT INTO JobsHot (
    Id, Queue, Type, Status, IsReady, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash,
    CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, IdempotencyKey, CreatedBy, Tags, Payload
)
SELECT
    @id, @queue, @type, 0, @due <= @now, @priority, 0, @retries, @timeout_ms, @max_age_ms, @on_crash,
    @now, @due, @deadline, @key, @created_by, @tags, @payload
WHERE NOT EXISTS (SELECT 1 FROM JobsArchive WHERE Id = @id)
    AND NOT EXISTS (SELECT 1 FROM JobsDLQ WHERE Id = @id)
ON CONFLICT DO NOTHING;

-- Whether the job itself is stored, and who holds its key.
SELECT
    EXISTS (SELECT 1 FROM JobsHot WHERE Id = @id)
        OR EXISTS (SELECT 1 FROM JobsArchive WHERE Id = @id)
        OR EXISTS (SELECT 1 FROM JobsDLQ WHERE Id = @id) AS IsStored,
    (SELECT Id FROM JobsHot WHERE Type = @type AND IdempotencyKey = @key) AS Holder;
