-- Caller: WorkerStorage::fetch_next_batch, with the rows that fetch_candidates chose in the same transaction.
-- Intent: claim them under a fresh LeaseId. Uses no attempt.
-- Invariant: a row is claimed by one fetch only: Status = 0 is compared in the statement that claims.
-- Twin: SQL Server chooses and locks in one statement and returns the payloads after the commit.
UPDATE JobsHot NOT INDEXED
SET Status = 1, WorkerId = @worker, LeaseId = @lease, FetchedAtUtc = @now
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND Status = 0
RETURNING
    Seq, Id, LeaseId, Queue, Type, Payload, Tags, Priority, AttemptCount, MaxRetries, TimeoutMs, CreatedAtUtc,
    ScheduledAtUtc, UnknownSinceUtc, DeadlineUtc;
