-- Caller: OperatorStorage::get_archive_paged.
-- Intent: Succeeded jobs, newest first, by keyset: a page deep in history costs what the first one does.
-- Invariant: none to protect, it reads: at most a page. Id is compared as SQL Server orders uniqueidentifier, and the
--   cursor names the last row of the page before.
-- Twin: seeks to the cursor itself: it need not stand in the table any more.
-- Locks: none kept.
-- Retry: safe, it reads.
-- @queue nvarchar(255), NULL for all
-- @after_at_ms bigint, NULL for the first page
-- @after_id uniqueidentifier
-- @limit int
-- Answers: the rows of the page.
SET NOCOUNT ON;
DECLARE @after_at datetime2(3) = CASE
    WHEN @after_at_ms IS NULL THEN '99991231'
    ELSE DATEADD(millisecond, @after_at_ms % 1000, DATEADD(second, CONVERT(int, @after_at_ms / 1000 % 86400), DATEADD(day, CONVERT(int, @after_at_ms / 86400000), CONVERT(datetime2(3), '19700101'))))
END;

IF @queue IS NULL
    SELECT /* chokaq:get_archive_paged */ TOP (@limit)
        x.Id, x.Queue, x.Type, x.Tags, x.AttemptCount, DATEDIFF_BIG(millisecond, '19700101', x.CreatedAtUtc) AS CreatedAtMs,
        DATEDIFF_BIG(millisecond, '19700101', x.StartedAtUtc) AS StartedAtMs, DATEDIFF_BIG(millisecond, '19700101', x.FinishedAtUtc) AS FinishedAtMs,
        x.WorkerId, x.[Output]
    FROM [chokaq].JobsArchive AS x WITH (INDEX(PK_JobsArchive), FORCESEEK)
    WHERE x.FinishedAtUtc <= @after_at AND (x.FinishedAtUtc < @after_at OR x.Id < @after_id)
    ORDER BY x.FinishedAtUtc DESC, x.Id DESC
    OPTION (MAXDOP 1, KEEPFIXED PLAN);
ELSE
BEGIN
    DECLARE @page TABLE (AtUtc datetime2(3) NOT NULL, Id uniqueidentifier NOT NULL, PRIMARY KEY (AtUtc, Id));

    -- The page, by the index alone: no lock on it is held while a row is waited for.
    INSERT /* chokaq:get_archive_paged */ INTO @page (AtUtc, Id)
    SELECT TOP (@limit) x.FinishedAtUtc, x.Id
    FROM [chokaq].JobsArchive AS x WITH (INDEX(IX_JobsArchive_Queue), FORCESEEK)
    WHERE x.Queue = @queue AND x.FinishedAtUtc <= @after_at AND (x.FinishedAtUtc < @after_at OR x.Id < @after_id)
    ORDER BY x.FinishedAtUtc DESC, x.Id DESC
    OPTION (MAXDOP 1, KEEPFIXED PLAN);

    SELECT /* chokaq:get_archive_paged */
        x.Id, x.Queue, x.Type, x.Tags, x.AttemptCount, DATEDIFF_BIG(millisecond, '19700101', x.CreatedAtUtc) AS CreatedAtMs,
        DATEDIFF_BIG(millisecond, '19700101', x.StartedAtUtc) AS StartedAtMs, DATEDIFF_BIG(millisecond, '19700101', x.FinishedAtUtc) AS FinishedAtMs,
        x.WorkerId, x.[Output]
    FROM @page AS i
    INNER LOOP JOIN [chokaq].JobsArchive AS x WITH (INDEX(PK_JobsArchive), FORCESEEK) ON x.FinishedAtUtc = i.AtUtc AND x.Id = i.Id
    ORDER BY x.FinishedAtUtc DESC, x.Id DESC
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
END
