-- Caller: WorkerStorage::finalise, once per call for the retries in it.
-- Intent: Processing -> Pending, the attempt counted, due again after the delay, with the error added to those before
--   it (the newest 25 are kept).
-- Invariant: only the holder. A row that would be due after its deadline, or whose cancellation an operator asked
--   for, is refused here, and the caller's move_to_dlq takes it: a cancel wins over a retry. LeaseId stays, so that a
--   repeated call recognises its own effect.
-- Twin: the refused rows go to the dead-letter queue by the next call, not in the same transaction: until then they
--   are Processing and owned.
-- Locks: Hot > Stats. Waits, in Seq order; the counters by queue.
-- Retry: safe: a rescheduled row is not matched again, and find_finished recognises it by LeaseId. 2627 as in
--   archive_succeeded.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId, "ds": delay in s, "dm": and ms, "a": attempt, "k": kind, "t": text}]
-- Answers: Id of the rows rescheduled.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
-- A shard of the counters for each session, so that sessions seldom wait for one another.
DECLARE @shard tinyint = @@SPID % 16;
DECLARE @in TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    LeaseId uniqueidentifier NOT NULL,
    DelayS int NOT NULL,
    DelayMs int NOT NULL,
    -- The error of this attempt, as it is added to those before it.
    Entry nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
);
INSERT INTO @in (Seq, LeaseId, DelayS, DelayMs, Entry)
SELECT
    j.Seq, j.LeaseId, j.DelayS, j.DelayMs,
    CONCAT(
        N'{"attempt":', j.ErrorAttempt, N',"at_ms":', DATEDIFF_BIG(millisecond, '19700101', @now),
        N',"kind":"', j.ErrorKind, N'","text":"', STRING_ESCAPE(j.ErrorText, N'json'), N'"}'
    )
FROM OPENJSON(@items) WITH (
    Seq bigint '$.s',
    LeaseId uniqueidentifier '$.l',
    DelayS int '$.ds',
    DelayMs int '$.dm',
    ErrorAttempt int '$.a',
    ErrorKind nvarchar(32) '$.k',
    ErrorText nvarchar(max) '$.t'
) AS j;
DECLARE @out TABLE (Id uniqueidentifier NOT NULL, Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL);
DECLARE @sum TABLE (
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY,
    Succeeded int NOT NULL, Failed int NOT NULL, Retried int NOT NULL, DurationMs bigint NOT NULL
);

BEGIN TRANSACTION;

UPDATE /* chokaq:reschedule_for_retry */ h
SET Status = 0, WorkerId = NULL, FetchedAtUtc = NULL, StartedAtUtc = NULL, HeartbeatUtc = NULL, SuspectUtc = NULL,
    Progress = NULL, ProgressNote = NULL,
    ScheduledAtUtc = DATEADD(millisecond, i.DelayMs, DATEADD(second, i.DelayS, @now)),
    IsReady = CASE WHEN i.DelayS > 0 OR i.DelayMs > 0 THEN 0 ELSE 1 END,
    Errors = CONCAT((
        SELECT CASE
            WHEN k.Kept IS NULL THEN N'['
            ELSE CONCAT(LEFT(k.Kept, LEN(k.Kept) - 1), N',')
        END
        FROM (
            -- Errors that are no JSON array of objects any more are begun anew: they strand no job.
            SELECT CASE WHEN ISJSON(h.Errors) = 1 AND LEFT(h.Errors, 2) = N'[{' THEN h.Errors END AS Valid
        ) AS v
        CROSS APPLY (
            -- The newest 25 are kept: the first goes when one is added to 25.
            SELECT CASE
                WHEN JSON_QUERY(v.Valid, N'$[24]') IS NULL THEN v.Valid
                ELSE STUFF(v.Valid, 1, LEN(JSON_QUERY(v.Valid, N'$[0]')) + 2, N'[')
            END AS Kept
        ) AS k
    ), i.Entry, N']')
OUTPUT inserted.Id, inserted.Queue INTO @out (Id, Queue)
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 2
    AND DATEADD(millisecond, i.DelayMs, DATEADD(second, i.DelayS, @now)) <= h.DeadlineUtc AND h.CancelRequestedUtc IS NULL
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

INSERT INTO @sum (Queue, Succeeded, Failed, Retried, DurationMs)
SELECT o.Queue, 0, 0, COUNT(*), 0
FROM @out AS o
GROUP BY o.Queue;

INSERT /* chokaq:reschedule_for_retry */ INTO [chokaq].StatsSummary (Queue, Shard)
SELECT t.Queue, @shard
FROM @sum AS t
WHERE NOT EXISTS (
        SELECT 1 FROM [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE s.Queue = t.Queue AND s.Shard = @shard
    )
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

UPDATE /* chokaq:reschedule_for_retry */ s
SET SucceededTotal = s.SucceededTotal + t.Succeeded, FailedTotal = s.FailedTotal + t.Failed,
    RetriedTotal = s.RetriedTotal + t.Retried, LastActivityUtc = @now
FROM @sum AS t
INNER LOOP JOIN [chokaq].StatsSummary AS s WITH (INDEX(PK_StatsSummary), FORCESEEK, ROWLOCK)
    ON s.Queue = t.Queue AND s.Shard = @shard
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

SELECT o.Id
FROM @out AS o;
