-- Caller: WorkerStorage::finalise, once per lease and output (most jobs have none: one pair of statements a lease).
-- Intent: Processing -> JobsArchive.
-- Invariant: one transaction; both statements repeat the whole guard, so what is deleted is what was copied, and a
--   worker that lost its lease moves nothing.
-- Twin: SQL Server deletes with OUTPUT into a table variable and inserts from it; SQLite has no such DELETE, and its
--   one writer lets nobody in between.
INSERT INTO JobsArchive (
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, StartedAtUtc,
    FinishedAtUtc, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors, Output, OutputNote, Payload
)
SELECT
    Id, Queue, Type, Priority, AttemptCount, MaxRetries, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc,
    coalesce(StartedAtUtc, @now), @now, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Tags, Errors, @output, @note,
    Payload
FROM JobsHot NOT INDEXED
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 2
RETURNING Id, Queue, FinishedAtUtc - StartedAtUtc AS DurationMs;

DELETE FROM JobsHot NOT INDEXED
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 2;
