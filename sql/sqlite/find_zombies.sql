-- Caller: archive_zombies, first.
-- Intent: the second strike: running rows that were noted at least @suspicion_ms ago and still do not beat. The answer
--   says which may run again: on_crash = retry, attempts and lifetime left, and no operator asked for a cancel.
-- Invariant: age and suspicion are both compared: a heartbeat clears the suspicion. Walks the active rows only.
-- Twin: as note_suspects.
SELECT
    j.Seq, j.Id, j.Queue, j.Type, j.WorkerId,
    j.OnCrash = 1 AND j.AttemptCount <= j.MaxRetries AND @now <= j.DeadlineUtc AND j.CancelRequestedUtc IS NULL
        AS IsRetried,
    j.CancelRequestedUtc IS NOT NULL AS IsCancelled
FROM JobsHot AS j INDEXED BY IX_JobsHot_Active
LEFT JOIN Queues AS q ON q.Name = j.Queue
WHERE j.Status > 0 AND j.Status = 2 AND j.SuspectUtc <= @now - @suspicion_ms
    AND j.HeartbeatUtc < @now - coalesce(q.ZombieTimeoutMs, @lease_ms)
LIMIT @batch;
