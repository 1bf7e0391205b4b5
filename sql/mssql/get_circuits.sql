-- Caller: OperatorStorage::get_circuits.
-- Intent: the circuits that are not closed. One that its worker has not told of lately is gone with the worker.
-- Invariant: none to protect, it reads: as many rows as workers have circuits open, at most 1,000.
-- Twin: the same.
-- Locks: none kept: READPAST.
-- Retry: safe, it reads.
-- @fresh_s int
-- Answers: Type, WorkerId, State, Failures, Error, OpenedAtMs, RetryAtMs, SeenAtMs.
SET NOCOUNT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();

SELECT /* chokaq:get_circuits */ TOP (1000)
    c.Type, c.WorkerId, c.State, c.Failures, c.Error,
    DATEDIFF_BIG(millisecond, '19700101', c.OpenedAtUtc) AS OpenedAtMs,
    DATEDIFF_BIG(millisecond, '19700101', c.RetryAtUtc) AS RetryAtMs,
    DATEDIFF_BIG(millisecond, '19700101', c.SeenAtUtc) AS SeenAtMs
FROM [chokaq].Circuits AS c WITH (INDEX(IX_Circuits_Seen), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE c.SeenAtUtc >= DATEADD(second, -@fresh_s, @now)
ORDER BY c.Type, c.WorkerId
OPTION (MAXDOP 1, KEEPFIXED PLAN);
