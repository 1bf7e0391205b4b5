-- Caller: OperatorStorage::get_circuits.
-- Intent: the circuits that are not closed. One that its worker has not told of lately is gone with the worker.
-- Invariant: none to protect, it reads: as many rows as workers have circuits open, at most 1,000.
-- Twin: the same.
SELECT Type, WorkerId, State, Failures, Error, OpenedAtUtc, RetryAtUtc, SeenAtUtc
FROM Circuits
WHERE SeenAtUtc >= @since
ORDER BY Type, WorkerId
LIMIT 1000;
