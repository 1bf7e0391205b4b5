-- Caller: OperatorStorage::set_queue.
-- Intent: changes the settings that are named, keeps the others; the queue exists after it.
-- Invariant: a setting that may be NULL has a flag of its own: NULL is a value for it.
-- Twin: inserts a missing queue first, in a statement of its own.
-- Locks: Queues. Waits for a claim that counts (a few ms).
-- Retry: safe. 2627 (another call inserted the queue): run it again.
-- @queue nvarchar(255)
-- @paused bit, NULL keeps
-- @active bit, NULL keeps
-- @sets_max_workers bit
-- @max_workers int
-- @sets_zombie_timeout bit
-- @zombie_timeout_ms bigint
-- Answers: nothing.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();

INSERT /* chokaq:set_queue */ INTO [chokaq].Queues (Name, UpdatedAtUtc)
SELECT s.Name, @now
FROM (SELECT @queue AS Name) AS s
WHERE NOT EXISTS (SELECT 1 FROM [chokaq].Queues AS q WHERE q.Name = @queue);

UPDATE /* chokaq:set_queue */ q
SET IsPaused = COALESCE(@paused, q.IsPaused),
    IsActive = COALESCE(@active, q.IsActive),
    MaxWorkers = CASE WHEN @sets_max_workers = 1 THEN @max_workers ELSE q.MaxWorkers END,
    ZombieTimeoutMs = CASE WHEN @sets_zombie_timeout = 1 THEN @zombie_timeout_ms ELSE q.ZombieTimeoutMs END,
    UpdatedAtUtc = @now
FROM [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK)
WHERE q.Name = @queue;
