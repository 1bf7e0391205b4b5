-- What a person asks while something is wrong, in plain SQL over the tables. Each query stands alone: mark one and run it.
-- They pass over locked rows (READPAST) and wait for nobody, so a count may be a few rows short. On a readable secondary
-- replica they run as they are and burden no worker. Another schema: replace [chokaq].

-- What runs now, the longest first. BeatAgoMs beyond the lease (120,000 by default) is a worker that is gone.
SELECT TOP (100) h.Id, h.Queue, h.Type, h.AttemptCount, h.WorkerId,
    DATEDIFF_BIG(millisecond, h.StartedAtUtc, SYSUTCDATETIME()) AS RunsForMs,
    DATEDIFF_BIG(millisecond, h.HeartbeatUtc, SYSUTCDATETIME()) AS BeatAgoMs,
    h.Progress, h.ProgressNote, h.CancelRequestedUtc
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_ProcessingHeartbeat), READPAST, READCOMMITTEDLOCK)
WHERE h.Status = 2
ORDER BY h.StartedAtUtc;

-- The workers, by what they hold.
SELECT h.WorkerId, COUNT(CASE WHEN h.Status = 1 THEN 1 END) AS Fetched, COUNT(CASE WHEN h.Status = 2 THEN 1 END) AS Running,
    MAX(h.HeartbeatUtc) AS LastBeatUtc
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_QueueStats), READPAST, READCOMMITTEDLOCK)
WHERE h.Status > 0
GROUP BY h.WorkerId
ORDER BY h.WorkerId;

-- Lag per queue: how long the oldest job that is ready has waited. Ready counts stop at 100,000.
SELECT q.Name, q.IsPaused, q.IsActive, q.MaxWorkers, r.Ready, o.OldestUtc,
    DATEDIFF_BIG(millisecond, o.OldestUtc, SYSUTCDATETIME()) AS LagMs
FROM [chokaq].Queues AS q WITH (READPAST, READCOMMITTEDLOCK)
OUTER APPLY (
    SELECT TOP (1) h.ScheduledAtUtc AS OldestUtc
    FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_PendingLag), READPAST, READCOMMITTEDLOCK)
    WHERE h.Queue = q.Name AND h.Status = 0 AND h.IsReady = 1
    ORDER BY h.ScheduledAtUtc
) AS o
OUTER APPLY (
    SELECT COUNT(*) AS Ready
    FROM (
        SELECT TOP (100000) 1 AS One
        FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_PendingLag), READPAST, READCOMMITTEDLOCK)
        WHERE h.Queue = q.Name AND h.Status = 0 AND h.IsReady = 1
    ) AS c
) AS r
ORDER BY LagMs DESC;

-- The oldest jobs that wait in one queue, and what is asked of them.
DECLARE @queue nvarchar(255) = N'default';
SELECT TOP (100) h.Id, h.Type, h.Priority, h.AttemptCount, h.CreatedAtUtc, h.ScheduledAtUtc, h.DeadlineUtc, h.IdempotencyKey, h.Tags
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_PendingLag), READPAST, READCOMMITTEDLOCK)
WHERE h.Queue = @queue AND h.Status = 0 AND h.IsReady = 1
ORDER BY h.ScheduledAtUtc;

-- What is delayed, by the hour in which it is due (of the next 100,000).
SELECT d.Queue, DATEADD(hour, DATEDIFF(hour, '20000101', d.ScheduledAtUtc), CONVERT(datetime2(0), '20000101')) AS HourUtc, COUNT(*) AS Jobs
FROM (
    SELECT TOP (100000) h.Queue, h.ScheduledAtUtc
    FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Delayed), READPAST, READCOMMITTEDLOCK)
    WHERE h.Status = 0 AND h.IsReady = 0
    ORDER BY h.ScheduledAtUtc
) AS d
GROUP BY d.Queue, DATEADD(hour, DATEDIFF(hour, '20000101', d.ScheduledAtUtc), CONVERT(datetime2(0), '20000101'))
ORDER BY HourUtc, d.Queue;

-- The commonest errors of the last day in the dead-letter queue, among its newest 10,000.
SELECT TOP (20) e.Type, e.Reason, e.ErrorStart, COUNT(*) AS Jobs, MAX(e.FailedAtUtc) AS LastUtc
FROM (
    SELECT TOP (10000) d.Type, d.Reason, LEFT(d.Error, 200) AS ErrorStart, d.FailedAtUtc
    FROM [chokaq].JobsDLQ AS d WITH (READPAST, READCOMMITTEDLOCK)
    WHERE d.FailedAtUtc > DATEADD(day, -1, SYSUTCDATETIME())
    ORDER BY d.FailedAtUtc DESC
) AS e
GROUP BY e.Type, e.Reason, e.ErrorStart
ORDER BY Jobs DESC, LastUtc DESC;

-- What finished in the last five minutes, by queue: jobs a second and how long they ran.
SELECT b.Queue, SUM(b.Succeeded) / 300.0 AS SucceededPerS, SUM(b.Failed) / 300.0 AS FailedPerS,
    SUM(b.DurationMs) / NULLIF(SUM(b.Succeeded), 0) AS MeanMs
FROM [chokaq].MetricBuckets AS b WITH (READPAST, READCOMMITTEDLOCK)
WHERE b.BucketUtc >= DATEADD(minute, -5, SYSUTCDATETIME())
GROUP BY b.Queue
ORDER BY b.Queue;

-- Where one job is, whatever table it stands in.
DECLARE @id uniqueidentifier = '00000000-0000-0000-0000-000000000000';
SELECT N'JobsHot' AS Place, h.Queue, h.Type, h.AttemptCount, h.WorkerId, h.ScheduledAtUtc AS AtUtc, CONVERT(nvarchar(32), h.Status) AS StatusOrReason, h.Errors
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id))
WHERE h.Id = @id
UNION ALL
SELECT N'JobsArchive', a.Queue, a.Type, a.AttemptCount, a.WorkerId, a.FinishedAtUtc, N'Succeeded', a.Errors
FROM [chokaq].JobsArchive AS a WITH (INDEX(IX_JobsArchive_Id))
WHERE a.Id = @id
UNION ALL
SELECT N'JobsDLQ', d.Queue, d.Type, d.AttemptCount, d.WorkerId, d.FailedAtUtc, d.Reason, d.Errors
FROM [chokaq].JobsDLQ AS d WITH (INDEX(IX_JobsDLQ_Id))
WHERE d.Id = @id;

-- Who waits for whom among chokaq's sessions (VIEW SERVER STATE; only one's own without it). The programs log in as
-- `chokaq worker`, `chokaq heartbeat`, `chokaq page` and `chokaq maintenance`, or what application_name in their URL says.
SELECT r.session_id AS SessionId, s.program_name AS Program, r.blocking_session_id AS BlockedBy, b.program_name AS BlockedByProgram,
    r.wait_type AS WaitsFor, r.wait_time AS WaitsForMs, r.wait_resource AS Resource, t.text AS Statement
FROM sys.dm_exec_requests AS r
INNER JOIN sys.dm_exec_sessions AS s ON s.session_id = r.session_id
LEFT JOIN sys.dm_exec_sessions AS b ON b.session_id = r.blocking_session_id
OUTER APPLY sys.dm_exec_sql_text(r.sql_handle) AS t
WHERE s.program_name LIKE N'chokaq%' AND r.blocking_session_id <> 0
ORDER BY r.wait_time DESC;
