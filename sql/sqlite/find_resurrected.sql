-- Caller: resurrect, where its insert did nothing.
-- Intent: why: the job is not dead, or an active job holds its key. A job that waits with no attempt but with errors
--   can only have come from a resurrect: a repeated call recognises its first run by that.
-- Invariant: none to protect, it reads.
-- Twin: the same.
SELECT
    EXISTS (SELECT 1 FROM JobsDLQ WHERE Id = @id) AS IsDead,
    EXISTS (SELECT 1 FROM JobsHot WHERE Id = @id AND AttemptCount = 0 AND Errors IS NOT NULL) AS IsResurrected,
    (
        SELECT h.Id
        FROM JobsDLQ AS d
        CROSS JOIN JobsHot AS h ON h.Type = d.Type AND h.IdempotencyKey = d.IdempotencyKey
        WHERE d.Id = @id
    ) AS Holder;
