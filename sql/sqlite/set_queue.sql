-- Caller: OperatorStorage::set_queue, after ensure_queue.
-- Intent: changes the settings that are named, keeps the others.
-- Invariant: a setting that may be NULL has a flag of its own: NULL is a value for it.
-- Twin: the same.
UPDATE Queues
SET IsPaused = coalesce(@paused, IsPaused),
    IsActive = coalesce(@active, IsActive),
    MaxWorkers = CASE WHEN @sets_max_workers THEN @max_workers ELSE MaxWorkers END,
    ZombieTimeoutMs = CASE WHEN @sets_zombie_timeout THEN @zombie_timeout_ms ELSE ZombieTimeoutMs END,
    UpdatedAtUtc = @now
WHERE Name = @queue;
