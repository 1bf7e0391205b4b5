-- Caller: finalise, for the jobs that were not this lease's any more.
-- Intent: whether an earlier run of the same call did it: its reply may have been lost.
-- Invariant: the LeaseId is compared everywhere; in the dead-letter queue the caller compares the reason too, because
--   rescue moves a row with its LeaseId. What rescue puts back to Pending carries none. The guarded write came first
--   and waited for an unfinished run: this read follows it.
-- Twin: takes all of a call at once.
-- Locks: none kept: Hot, then Archive, then DLQ, one row at a time.
-- Retry: safe, it reads.
-- @items nvarchar(max), [{"i": Id, "l": LeaseId}]
-- Answers: Id, IsPending, IsArchived, DeadReason for each item.
SET NOCOUNT ON;
DECLARE @in TABLE (Id uniqueidentifier NOT NULL PRIMARY KEY, LeaseId uniqueidentifier NOT NULL);
INSERT INTO @in (Id, LeaseId)
SELECT j.Id, j.LeaseId
FROM OPENJSON(@items) WITH (Id uniqueidentifier '$.i', LeaseId uniqueidentifier '$.l') AS j;
DECLARE @at TABLE (
    Id uniqueidentifier NOT NULL PRIMARY KEY, LeaseId uniqueidentifier NOT NULL,
    Seq bigint NULL, FinishedAtUtc datetime2(3) NULL, FailedAtUtc datetime2(3) NULL
);

-- Their places, by the indexes on Id alone: no lock on an index is held while a row is waited for.
INSERT /* chokaq:find_finished */ INTO @at (Id, LeaseId, Seq, FinishedAtUtc, FailedAtUtc)
SELECT i.Id, i.LeaseId, p.Seq, a.FinishedAtUtc, d.FailedAtUtc
FROM @in AS i
LEFT LOOP JOIN [chokaq].JobsHot AS p WITH (INDEX(IX_JobsHot_Id), FORCESEEK) ON p.Id = i.Id
LEFT LOOP JOIN [chokaq].JobsArchive AS a WITH (INDEX(IX_JobsArchive_Id), FORCESEEK) ON a.Id = i.Id
LEFT LOOP JOIN [chokaq].JobsDLQ AS d WITH (INDEX(IX_JobsDLQ_Id), FORCESEEK) ON d.Id = i.Id
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT /* chokaq:find_finished */
    i.Id,
    CASE WHEN p.Id IS NULL THEN 0 ELSE 1 END AS IsPending,
    CASE WHEN a.Id IS NULL THEN 0 ELSE 1 END AS IsArchived,
    d.Reason AS DeadReason
FROM @at AS i
LEFT LOOP JOIN [chokaq].JobsHot AS p WITH (INDEX(PK_JobsHot), FORCESEEK)
    ON p.Seq = i.Seq AND p.LeaseId = i.LeaseId AND p.WorkerId IS NULL AND p.Status = 0
LEFT LOOP JOIN [chokaq].JobsArchive AS a WITH (INDEX(PK_JobsArchive), FORCESEEK)
    ON a.FinishedAtUtc = i.FinishedAtUtc AND a.Id = i.Id AND a.LeaseId = i.LeaseId
LEFT LOOP JOIN [chokaq].JobsDLQ AS d WITH (INDEX(PK_JobsDLQ), FORCESEEK)
    ON d.FailedAtUtc = i.FailedAtUtc AND d.Id = i.Id AND d.LeaseId = i.LeaseId
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
