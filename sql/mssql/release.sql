-- Caller: WorkerStorage::release, once per call.
-- Intent: Fetched -> Pending: user code has not run, no attempt is used. With a delay it is due again later; for an
--   unknown type the row keeps since when it has gone round.
-- Invariant: only the holder gives back. LeaseId stays, so that a repeated call recognises its own effect.
-- Twin: takes each row with its delay, so that all kinds go in one statement.
-- Locks: Hot. Waits, in Seq order.
-- Retry: safe: find_released recognises the rows of an earlier run.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId, "ds": delay in s or null, "dm": and ms, "u": true for an unknown type}]
-- Answers: Seq of the rows given back.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    LeaseId uniqueidentifier NOT NULL,
    DelayS int NULL,
    DelayMs int NULL,
    IsUnknown bit NULL
);
INSERT INTO @in (Seq, LeaseId, DelayS, DelayMs, IsUnknown)
SELECT j.Seq, j.LeaseId, j.DelayS, j.DelayMs, j.IsUnknown
FROM OPENJSON(@items) WITH (
    Seq bigint '$.s',
    LeaseId uniqueidentifier '$.l',
    DelayS int '$.ds',
    DelayMs int '$.dm',
    IsUnknown bit '$.u'
) AS j;
DECLARE @out TABLE (Seq bigint NOT NULL PRIMARY KEY);

UPDATE /* chokaq:release */ h
SET Status = 0, WorkerId = NULL, FetchedAtUtc = NULL,
    ScheduledAtUtc = COALESCE(DATEADD(millisecond, i.DelayMs, DATEADD(second, i.DelayS, @now)), h.ScheduledAtUtc),
    IsReady = CASE WHEN i.DelayS > 0 OR i.DelayMs > 0 THEN 0 ELSE 1 END,
    UnknownSinceUtc = CASE WHEN i.IsUnknown = 1 THEN COALESCE(h.UnknownSinceUtc, @now) ELSE h.UnknownSinceUtc END
OUTPUT inserted.Seq INTO @out (Seq)
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 1
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT o.Seq
FROM @out AS o;
