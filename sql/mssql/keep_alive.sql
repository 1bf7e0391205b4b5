-- Caller: WorkerStorage::keep_alive, once per worker and beat.
-- Intent: the heartbeat is renewed and a suspicion cleared; a cancel that an operator asked for comes back with it.
-- Invariant: only the holder renews. A row that another statement has locked is skipped, and looked at again by a
--   read that waits: only one that this read does not find is lost.
-- Twin: skips locked rows: a beat must not stand behind one slow row until every other lease runs out.
-- Locks: Hot. The update waits for nothing; the read after it waits for one row at a time and keeps no lock.
-- Retry: safe: a beat may come twice.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId, "p": progress or null, "n": note or null}]
-- Answers: Seq, IsRenewed, IsCancelRequested of the rows that are still this lease's; with IsRenewed = 0 the row was
--   locked: beat again soon. A row that does not come back is lost.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    LeaseId uniqueidentifier NOT NULL,
    Progress float NULL,
    Note nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL
);
INSERT INTO @in (Seq, LeaseId, Progress, Note)
SELECT j.Seq, j.LeaseId, j.Progress, j.Note
FROM OPENJSON(@items) WITH (
    Seq bigint '$.s',
    LeaseId uniqueidentifier '$.l',
    Progress float '$.p',
    Note nvarchar(max) '$.n'
) AS j;
DECLARE @out TABLE (Seq bigint NOT NULL PRIMARY KEY, IsRenewed bit NOT NULL, CancelRequestedUtc datetime2(3) NULL);

UPDATE /* chokaq:keep_alive */ h
SET HeartbeatUtc = @now, SuspectUtc = NULL,
    Progress = COALESCE(i.Progress, h.Progress),
    ProgressNote = CASE WHEN i.Progress IS NULL THEN h.ProgressNote ELSE i.Note END
OUTPUT inserted.Seq, 1, inserted.CancelRequestedUtc INTO @out (Seq, IsRenewed, CancelRequestedUtc)
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

DELETE i
FROM @in AS i
WHERE EXISTS (SELECT 1 FROM @out AS o WHERE o.Seq = i.Seq);

-- Whoever has a row locked has mostly not taken it: what still shows the lease needs no wait.
INSERT /* chokaq:keep_alive */ INTO @out (Seq, IsRenewed, CancelRequestedUtc)
SELECT h.Seq, 0, h.CancelRequestedUtc
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, READUNCOMMITTED) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

DELETE i
FROM @in AS i
WHERE EXISTS (SELECT 1 FROM @out AS o WHERE o.Seq = i.Seq);

-- The rest is gone, or is changed by a transaction that may still roll back: wait for it, one row at a time.
INSERT /* chokaq:keep_alive */ INTO @out (Seq, IsRenewed, CancelRequestedUtc)
SELECT h.Seq, 0, h.CancelRequestedUtc
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT o.Seq, o.IsRenewed, CASE WHEN o.CancelRequestedUtc IS NULL THEN 0 ELSE 1 END AS IsCancelRequested
FROM @out AS o;
