-- Caller: archive_zombies, last.
-- Intent: the first strike: running rows whose heartbeat is older than their queue's limit (or the lease) are noted. An
--   outage as long as the lease must not make zombies of every running job at the first scan after it.
-- Invariant: only Processing rows, and no noted one is noted again: its time counts from the first strike.
-- Twin: SQL Server goes by IX_JobsHot_ProcessingHeartbeat; here the active rows are walked, as many as the fleet holds.
UPDATE JobsHot NOT INDEXED
SET SuspectUtc = @now
WHERE Seq IN (
        SELECT j.Seq
        FROM JobsHot AS j INDEXED BY IX_JobsHot_Active
        LEFT JOIN Queues AS q ON q.Name = j.Queue
        WHERE j.Status > 0 AND j.Status = 2 AND j.SuspectUtc IS NULL
            AND j.HeartbeatUtc < @now - coalesce(q.ZombieTimeoutMs, @lease_ms)
    )
    AND Status = 2;
