-- Caller: cancel, for the ids that no active job has.
-- Intent: a repeated cancel recognises its first run: dead as Cancelled, for the same stated reason.
-- Invariant: a job that died of anything else was not cancelled.
-- Twin: the same.
-- Locks: none kept: DLQ.
-- Retry: safe, it reads.
-- @ids nvarchar(max), a JSON array
-- @reason nvarchar(max)
-- Answers: Id of the jobs found.
SET NOCOUNT ON;
DECLARE @in TABLE (Id uniqueidentifier NOT NULL PRIMARY KEY);
INSERT INTO @in (Id)
SELECT DISTINCT CONVERT(uniqueidentifier, j.[value])
FROM OPENJSON(@ids) AS j;
DECLARE @at TABLE (FailedAtUtc datetime2(3) NOT NULL, Id uniqueidentifier NOT NULL, PRIMARY KEY (FailedAtUtc, Id));

INSERT /* chokaq:find_cancelled */ INTO @at (FailedAtUtc, Id)
SELECT d.FailedAtUtc, d.Id
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsDLQ AS d WITH (INDEX(IX_JobsDLQ_Id), FORCESEEK) ON d.Id = i.Id
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT /* chokaq:find_cancelled */ d.Id
FROM @at AS i
INNER LOOP JOIN [chokaq].JobsDLQ AS d WITH (INDEX(PK_JobsDLQ), FORCESEEK) ON d.FailedAtUtc = i.FailedAtUtc AND d.Id = i.Id
WHERE d.Reason = N'Cancelled' AND d.Error = @reason
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
