-- Caller: OperatorStorage::cancel, after cancel_waiting.
-- Intent: a running row is flagged; its worker hears of it with its next control read or heartbeat.
-- Invariant: only Processing rows; the first request's time stays.
-- Twin: the same.
-- Locks: Hot. Waits, in Seq order.
-- Retry: safe: the second request changes nothing.
-- @ids nvarchar(max), a JSON array
-- Answers: Id, IsFlagged of the jobs that are active. One that is not flagged waits: it was running when the caller's
--   cancel_waiting looked, which is called again for it.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (Id uniqueidentifier NOT NULL PRIMARY KEY);
INSERT INTO @in (Id)
SELECT DISTINCT CONVERT(uniqueidentifier, j.[value])
FROM OPENJSON(@ids) AS j;
DECLARE @found TABLE (Seq bigint NOT NULL PRIMARY KEY, Id uniqueidentifier NOT NULL);

-- Their places, by the index alone; the guards are compared below.
INSERT /* chokaq:cancel_running */ INTO @found (Seq, Id)
SELECT h.Seq, h.Id
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK) ON h.Id = i.Id
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
DECLARE @out TABLE (Id uniqueidentifier NOT NULL);

UPDATE /* chokaq:cancel_running */ h
SET CancelRequestedUtc = COALESCE(h.CancelRequestedUtc, @now)
OUTPUT inserted.Id INTO @out (Id)
FROM @found AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT i.Id, CASE WHEN o.Id IS NULL THEN 0 ELSE 1 END AS IsFlagged
FROM @found AS i
LEFT JOIN @out AS o ON o.Id = i.Id;
