-- Caller: release, for the rows that its statement did not change.
-- Intent: a repeated release recognises its first run.
-- Invariant: Pending, and the last fetch was this one: rescue clears the LeaseId of what it takes back.
-- Twin: takes (Seq, lease) pairs.
-- Locks: Hot. Waits for one row at a time and keeps no lock.
-- Retry: safe, it reads.
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId}]
-- Answers: Seq of the rows found.
SET NOCOUNT ON;
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

SELECT /* chokaq:find_released */ h.Seq
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId IS NULL AND h.LeaseId = i.LeaseId AND h.Status = 0
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
