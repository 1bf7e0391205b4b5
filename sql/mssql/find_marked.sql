-- Caller: mark_as_processing, for the rows that its statement did not change.
-- Intent: a repeated mark recognises its first run: same attempt, same start; the heartbeat is renewed.
-- Invariant: only rows of this worker and this lease that are Processing; nothing is counted twice.
-- Twin: takes (Seq, lease) pairs.
-- Locks: Hot. Waits, in Seq order: an unfinished first run is waited for.
-- Retry: safe.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId}]
-- Answers: Seq, AttemptCount, StartedAtMs of the rows found.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    LeaseId uniqueidentifier NOT NULL
);
INSERT INTO @in (Seq, LeaseId)
SELECT j.Seq, j.LeaseId
FROM OPENJSON(@items) WITH (
    Seq bigint '$.s',
    LeaseId uniqueidentifier '$.l'
) AS j;
DECLARE @out TABLE (Seq bigint NOT NULL PRIMARY KEY, AttemptCount int NOT NULL, StartedAtUtc datetime2(3) NULL);

UPDATE /* chokaq:find_marked */ h
SET HeartbeatUtc = @now, SuspectUtc = NULL
OUTPUT inserted.Seq, inserted.AttemptCount, inserted.StartedAtUtc INTO @out (Seq, AttemptCount, StartedAtUtc)
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT o.Seq, o.AttemptCount, DATEDIFF_BIG(millisecond, '19700101', o.StartedAtUtc) AS StartedAtMs
FROM @out AS o;
