-- Caller: OperatorStorage::get_queue_health.
-- Intent: how far each active queue is behind, and how full it is.
-- Invariant: none to protect, it reads. Counts pass over locked rows and stop at a million.
-- Twin: has IX_JobsHot_PendingLag: the oldest row of a queue is one seek.
-- Locks: none kept: READPAST.
-- Retry: safe, it reads.
-- Answers: Name, MaxWorkers, Ready, Active, WorstLagMs (NULL when none is due), by name.
SET NOCOUNT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @delayed TABLE (Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, Delayed bigint NOT NULL, Overdue bigint NOT NULL, OldestUtc datetime2(3) NULL);

-- A delayed row counts as ready from the moment it is due, also where no fetch has promoted it.
INSERT /* chokaq:get_queue_health */ INTO @delayed (Queue, Delayed, Overdue, OldestUtc)
SELECT
    d.Queue, COUNT_BIG(CASE WHEN d.ScheduledAtUtc > @now THEN 1 END), COUNT_BIG(CASE WHEN d.ScheduledAtUtc <= @now THEN 1 END),
    MIN(d.ScheduledAtUtc)
FROM (
    SELECT TOP (1000000) h.Queue, h.ScheduledAtUtc
    FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Delayed), ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE h.Status = 0 AND h.IsReady = 0
    ORDER BY h.ScheduledAtUtc
) AS d
GROUP BY d.Queue
OPTION (MAXDOP 1, KEEPFIXED PLAN);

SELECT /* chokaq:get_queue_health */
    q.Name, q.MaxWorkers, r.Ready + COALESCE(d.Overdue, 0) AS Ready, a.Fetched + a.Processing AS Active,
    DATEDIFF_BIG(millisecond, CASE WHEN d.OldestUtc < o.OldestUtc OR o.OldestUtc IS NULL THEN d.OldestUtc ELSE o.OldestUtc END, @now) AS WorstLagMs
FROM [chokaq].Queues AS q
LEFT JOIN @delayed AS d ON d.Queue = q.Name AND d.OldestUtc <= @now
OUTER APPLY (
    SELECT TOP (1) h.ScheduledAtUtc AS OldestUtc
    FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_PendingLag), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE h.Queue = q.Name AND h.Status = 0 AND h.IsReady = 1
    ORDER BY h.ScheduledAtUtc
) AS o
OUTER APPLY (
    SELECT COUNT_BIG(*) AS Ready
    FROM (
        SELECT TOP (1000000) 1 AS One
        FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_PendingLag), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
        WHERE h.Queue = q.Name AND h.Status = 0 AND h.IsReady = 1
    ) AS c
) AS r
OUTER APPLY (
    SELECT COUNT_BIG(CASE WHEN h.Status = 1 THEN 1 END) AS Fetched, COUNT_BIG(CASE WHEN h.Status = 2 THEN 1 END) AS Processing
    FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_QueueStats), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE h.Queue = q.Name AND h.Status > 0
) AS a
WHERE q.IsActive = 1
ORDER BY q.Name
OPTION (MAXDOP 1, KEEPFIXED PLAN);
