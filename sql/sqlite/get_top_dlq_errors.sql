-- Caller: OperatorStorage::get_top_dlq_errors.
-- Intent: the commonest errors among the newest 1,000 dead jobs.
-- Invariant: none to protect, it reads: 1,000 rows, however many are dead.
-- Twin: the same.
SELECT Type, Reason, substr(coalesce(Error, ''), 1, 200) AS ErrorStart, count(*) AS Count, max(FailedAtUtc) AS LastUtc
FROM (SELECT Type, Reason, Error, FailedAtUtc FROM JobsDLQ ORDER BY Seq DESC LIMIT 1000)
GROUP BY Type, Reason, ErrorStart
ORDER BY Count DESC, LastUtc DESC
LIMIT @limit;
