-- Caller: OperatorStorage::find_job.
-- Intent: everything known of one job, wherever it stands.
-- Invariant: none to protect, it reads. The tables are read in the order in which a job goes through them; one on its
--   way back (a resurrect) may be missed: where nothing is found the caller asks once more.
-- Twin: the same; the caller asks twice.
-- Locks: none kept: Hot, then Archive, then DLQ.
-- Retry: safe, it reads.
-- @id uniqueidentifier
-- Answers: at most one row; Place is 0 for JobsHot, 1 for JobsArchive, 2 for JobsDLQ. Two rows: it moved while it was
--   read, take the one with the greater Place.
SET NOCOUNT ON;
DECLARE @seq bigint, @finished datetime2(3), @failed datetime2(3);

-- Its place, by the indexes on Id alone: no lock on an index is held while a row is waited for.
SELECT /* chokaq:find_job */ @seq = h.Seq
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id), FORCESEEK)
WHERE h.Id = @id
OPTION (MAXDOP 1, KEEPFIXED PLAN);
SELECT /* chokaq:find_job */ @finished = a.FinishedAtUtc
FROM [chokaq].JobsArchive AS a WITH (INDEX(IX_JobsArchive_Id), FORCESEEK)
WHERE a.Id = @id
OPTION (MAXDOP 1, KEEPFIXED PLAN);
SELECT /* chokaq:find_job */ @failed = d.FailedAtUtc
FROM [chokaq].JobsDLQ AS d WITH (INDEX(IX_JobsDLQ_Id), FORCESEEK)
WHERE d.Id = @id
OPTION (MAXDOP 1, KEEPFIXED PLAN);

SELECT /* chokaq:find_job */
    0 AS Place,
    x.Status AS Status,
    CONVERT(nvarchar(32), NULL) AS Reason,
    x.Id,
    x.Queue,
    x.Type,
    x.Payload,
    x.Tags,
    x.IdempotencyKey,
    x.CreatedBy,
    x.Priority,
    x.AttemptCount,
    x.MaxRetries,
    DATEDIFF_BIG(millisecond, '19700101', x.CreatedAtUtc) AS CreatedAtMs,
    DATEDIFF_BIG(millisecond, '19700101', x.ScheduledAtUtc) AS ScheduledAtMs,
    DATEDIFF_BIG(millisecond, '19700101', x.DeadlineUtc) AS DeadlineMs,
    DATEDIFF_BIG(millisecond, '19700101', x.StartedAtUtc) AS StartedAtMs,
    CONVERT(bigint, NULL) AS FinishedAtMs,
    x.WorkerId,
    DATEDIFF_BIG(millisecond, '19700101', x.CancelRequestedUtc) AS CancelRequestedMs,
    x.Progress AS Progress,
    x.ProgressNote AS ProgressNote,
    CONVERT(nvarchar(max), NULL) AS [Output],
    CONVERT(nvarchar(max), NULL) AS OutputNote,
    x.Errors
FROM [chokaq].JobsHot AS x WITH (INDEX(PK_JobsHot), FORCESEEK)
WHERE x.Seq = @seq AND x.Id = @id
UNION ALL
SELECT
    1 AS Place,
    CONVERT(tinyint, NULL) AS Status,
    CONVERT(nvarchar(32), NULL) AS Reason,
    x.Id,
    x.Queue,
    x.Type,
    x.Payload,
    x.Tags,
    x.IdempotencyKey,
    x.CreatedBy,
    x.Priority,
    x.AttemptCount,
    x.MaxRetries,
    DATEDIFF_BIG(millisecond, '19700101', x.CreatedAtUtc) AS CreatedAtMs,
    DATEDIFF_BIG(millisecond, '19700101', x.ScheduledAtUtc) AS ScheduledAtMs,
    DATEDIFF_BIG(millisecond, '19700101', x.DeadlineUtc) AS DeadlineMs,
    DATEDIFF_BIG(millisecond, '19700101', x.StartedAtUtc) AS StartedAtMs,
    DATEDIFF_BIG(millisecond, '19700101', x.FinishedAtUtc) AS FinishedAtMs,
    x.WorkerId,
    CONVERT(bigint, NULL) AS CancelRequestedMs,
    CONVERT(float, NULL) AS Progress,
    CONVERT(nvarchar(max), NULL) AS ProgressNote,
    x.[Output] AS [Output],
    x.OutputNote AS OutputNote,
    x.Errors
FROM [chokaq].JobsArchive AS x WITH (INDEX(PK_JobsArchive), FORCESEEK)
WHERE x.FinishedAtUtc = @finished AND x.Id = @id
UNION ALL
SELECT
    2 AS Place,
    CONVERT(tinyint, NULL) AS Status,
    x.Reason AS Reason,
    x.Id,
    x.Queue,
    x.Type,
    x.Payload,
    x.Tags,
    x.IdempotencyKey,
    x.CreatedBy,
    x.Priority,
    x.AttemptCount,
    x.MaxRetries,
    DATEDIFF_BIG(millisecond, '19700101', x.CreatedAtUtc) AS CreatedAtMs,
    DATEDIFF_BIG(millisecond, '19700101', x.ScheduledAtUtc) AS ScheduledAtMs,
    DATEDIFF_BIG(millisecond, '19700101', x.DeadlineUtc) AS DeadlineMs,
    DATEDIFF_BIG(millisecond, '19700101', x.StartedAtUtc) AS StartedAtMs,
    DATEDIFF_BIG(millisecond, '19700101', x.FailedAtUtc) AS FinishedAtMs,
    x.WorkerId,
    CONVERT(bigint, NULL) AS CancelRequestedMs,
    CONVERT(float, NULL) AS Progress,
    CONVERT(nvarchar(max), NULL) AS ProgressNote,
    CONVERT(nvarchar(max), NULL) AS [Output],
    CONVERT(nvarchar(max), NULL) AS OutputNote,
    x.Errors
FROM [chokaq].JobsDLQ AS x WITH (INDEX(PK_JobsDLQ), FORCESEEK)
WHERE x.FailedAtUtc = @failed AND x.Id = @id
OPTION (FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
