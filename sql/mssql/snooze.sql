-- Caller: WorkerStorage::finalise, once per call for the snoozes in it.
-- Intent: Processing -> Pending, the attempt given back, due again after the delay.
-- Invariant: only the holder. A row whose cancellation an operator asked for is refused here, and the caller's
--   move_to_dlq takes it. LeaseId stays, so that a repeated call recognises its own effect.
-- Twin: the refused rows go to the dead-letter queue by the next call.
-- Locks: Hot. Waits, in Seq order.
-- Retry: safe: a snoozed row is not matched again, and find_finished recognises it by LeaseId.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"s": Seq, "l": LeaseId, "ds": delay in s, "dm": and ms}]
-- Answers: Id of the rows snoozed.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (
    Seq bigint NOT NULL PRIMARY KEY,
    LeaseId uniqueidentifier NOT NULL,
    DelayS int NOT NULL,
    DelayMs int NOT NULL
);
INSERT INTO @in (Seq, LeaseId, DelayS, DelayMs)
SELECT j.Seq, j.LeaseId, j.DelayS, j.DelayMs
FROM OPENJSON(@items) WITH (
    Seq bigint '$.s',
    LeaseId uniqueidentifier '$.l',
    DelayS int '$.ds',
    DelayMs int '$.dm'
) AS j;
DECLARE @out TABLE (Id uniqueidentifier NOT NULL);

UPDATE /* chokaq:snooze */ h
SET Status = 0, WorkerId = NULL, FetchedAtUtc = NULL, StartedAtUtc = NULL, HeartbeatUtc = NULL, SuspectUtc = NULL,
    Progress = NULL, ProgressNote = NULL,
    ScheduledAtUtc = DATEADD(millisecond, i.DelayMs, DATEADD(second, i.DelayS, @now)),
    IsReady = CASE WHEN i.DelayS > 0 OR i.DelayMs > 0 THEN 0 ELSE 1 END,
    AttemptCount = CASE WHEN h.AttemptCount > 0 THEN h.AttemptCount - 1 ELSE 0 END
OUTPUT inserted.Id INTO @out (Id)
FROM @in AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = i.LeaseId AND h.Status = 2
    AND h.CancelRequestedUtc IS NULL
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT o.Id
FROM @out AS o;
