-- Caller: WorkerStorage::fetch_next_batch.
-- Intent: promote what is due, look at the head of each served queue, share the batch among those that have work,
--   claim under a fresh LeaseId. Uses no attempt. An idle poll is one seek a queue, and brings the control read when
--   one is due.
-- Invariant: a row is claimed by one fetch only: it is locked by the walk that chose it, and Status = 0 is compared
--   in the statement that claims. Priority is strict within a queue. MaxWorkers: whoever counts holds the lock on the
--   row of the queue until the commit, so nobody claims between its count and its claim. A paused or inactive queue
--   gives nothing: the settings are read again under a lock on the row of the queue that is kept to the commit, of its own
--   for a limited queue and shared for the others.
-- Twin: chooses and locks in one statement, promotes and shares in the same call, and returns the payloads after the
--   commit. Each limited queue is a transaction of its own: a count may wait for a row that another worker is
--   finishing, and no other row is held meanwhile. Bytes are those of UTF-16.
-- Locks: Queues > Hot. READPAST on both: a busy queue row is answered as IsBusy, a busy job is left to whoever has
--   it. The count alone waits, and holds only the row of its queue.
-- Retry: after any failure find_claimed comes first, as queues are committed one by one; then safe.
-- @worker nvarchar(255)
-- @lease uniqueidentifier
-- @queues nvarchar(max), a JSON array of names; NULL for all
-- @passed_over nvarchar(max), [{"q": queue, "n": batches in a row}] of the last reply
-- @take int
-- @take_limited int
-- @max_bytes bigint
-- @with_control bit
-- Answers: 1 and 2: as read_control (empty where not asked). 3: the claimed rows; the order to run them is by Turn,
--   then Place. 4: Queue, PassedOver, IsBusy of the queues that had work and got none; IsBusy: try again in 20 ms. 5:
--   NextDueMs from now, NULL when nothing is delayed.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @served TABLE (Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
INSERT INTO @served (Name)
SELECT DISTINCT CONVERT(nvarchar(255), j.[value]) COLLATE Latin1_General_100_BIN2
FROM OPENJSON(@queues) AS j
WHERE @queues IS NOT NULL;
IF @queues IS NULL
    INSERT INTO @served (Name)
    SELECT q.Name
    FROM [chokaq].Queues AS q WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK);

SELECT /* chokaq:fetch_next_batch */
    q.Name, CASE WHEN q.IsPaused = 1 OR q.IsActive = 0 THEN 1 ELSE 0 END AS IsStopped, q.ZombieTimeoutMs
FROM @served AS s
INNER LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    ON q.Name = s.Name
WHERE @with_control = 1 AND (q.IsPaused = 1 OR q.IsActive = 0 OR q.ZombieTimeoutMs IS NOT NULL)
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT /* chokaq:fetch_next_batch */ h.Id
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_CancelRequested), FORCESEEK)
WHERE @with_control = 1 AND h.WorkerId = @worker AND h.CancelRequestedUtc IS NOT NULL AND h.Status = 2
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

-- Promote.
DECLARE @due TABLE (Seq bigint NOT NULL PRIMARY KEY, Priority int NOT NULL);
DECLARE @promoted int;

BEGIN TRANSACTION;

INSERT /* chokaq:fetch_next_batch */ INTO @due (Seq, Priority)
SELECT TOP (1000) h.Seq, h.Priority
FROM [chokaq].JobsHot AS h
    WITH (INDEX(IX_JobsHot_Delayed), FORCESEEK, UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
WHERE h.Status = 0 AND h.IsReady = 0 AND h.ScheduledAtUtc <= @now AND h.WorkerId IS NULL
ORDER BY h.ScheduledAtUtc
OPTION (MAXDOP 1, KEEPFIXED PLAN);
SET @promoted = @@ROWCOUNT;

IF @promoted > 0
    UPDATE /* chokaq:fetch_next_batch */ h
    SET IsReady = 1
    FROM @due AS i
    INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
    WHERE h.Status = 0
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

-- The heads. Place is the order of service: the longest passed over first, then by priority and age.
DECLARE @heads TABLE (
    Place int IDENTITY(1, 1) NOT NULL PRIMARY KEY,
    Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    IsLimited bit NOT NULL, PassedOver int NOT NULL,
    Taken int NOT NULL, IsExhausted bit NOT NULL, IsFull bit NOT NULL, IsBusy bit NOT NULL
);
DECLARE @waiting TABLE (Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, PassedOver int NOT NULL);
INSERT INTO @waiting (Name, PassedOver)
SELECT j.Name COLLATE Latin1_General_100_BIN2 , MAX(j.PassedOver)
FROM OPENJSON(@passed_over) WITH (Name nvarchar(255) '$.q', PassedOver int '$.n') AS j
GROUP BY j.Name COLLATE Latin1_General_100_BIN2 ;

IF @take > 0
    INSERT /* chokaq:fetch_next_batch */ INTO @heads (Name, IsLimited, PassedOver, Taken, IsExhausted, IsFull, IsBusy)
    SELECT q.Name, CASE WHEN q.MaxWorkers IS NULL THEN 0 ELSE 1 END, COALESCE(w.PassedOver, 0), 0, 0, 0, 0
    FROM @served AS s
    -- A queue whose settings are being changed is not served this time: nobody waits behind an operator who waits.
    INNER LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
        ON q.Name = s.Name
    CROSS APPLY (
        SELECT TOP (1) f.Priority, f.ScheduledAtUtc
        FROM [chokaq].JobsHot AS f WITH (INDEX(IX_JobsHot_Fetch), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
        WHERE f.Queue = q.Name AND f.Status = 0 AND f.IsReady = 1
        ORDER BY f.Priority DESC, f.ScheduledAtUtc, f.Seq
    ) AS e
    LEFT LOOP JOIN @waiting AS w ON w.Name = q.Name
    WHERE q.IsPaused = 0 AND q.IsActive = 1
    ORDER BY COALESCE(w.PassedOver, 0) DESC, e.Priority DESC, e.ScheduledAtUtc, q.Name
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

DECLARE @claimed TABLE (
    Ord int IDENTITY(1, 1) NOT NULL PRIMARY KEY, Seq bigint NOT NULL UNIQUE, Place int NOT NULL, Bytes bigint NOT NULL
);
DECLARE @open TABLE (Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
DECLARE @last int = (SELECT COUNT(*) FROM @heads);
DECLARE @fair int = CASE WHEN @last = 0 THEN 0 ELSE (@take + @last - 1) / @last END;
DECLARE @pass int = 1, @place int = 1, @left int = @take, @left_limited int = @take_limited, @is_full bit = 0;
DECLARE @queue nvarchar(255), @is_limited bit, @is_done bit, @max_workers int, @active int;
DECLARE @n int, @got int, @from int, @cut int;

-- First a fair part for every head, then what is left, in the same order.
WHILE @pass <= 2 AND @last > 0 AND @left > 0 AND @is_full = 0
BEGIN
    SELECT @queue = d.Name, @is_limited = d.IsLimited,
        @is_done = CASE WHEN d.IsExhausted = 1 OR d.IsFull = 1 OR d.IsBusy = 1 THEN 1 ELSE 0 END
    FROM @heads AS d
    WHERE d.Place = @place;

    SET @n = CASE WHEN @pass = 1 AND @fair < @left THEN @fair ELSE @left END;
    IF @is_limited = 1 AND @left_limited < @n
        SET @n = @left_limited;

    IF @is_done = 0 AND @n > 0
    BEGIN
        IF @is_limited = 1
        BEGIN
            IF @@TRANCOUNT > 0
                COMMIT TRANSACTION;
            BEGIN TRANSACTION;

            SET @active = NULL;
            SELECT /* chokaq:fetch_next_batch */ @max_workers = q.MaxWorkers, @active = 0
            FROM [chokaq].Queues AS q
                WITH (INDEX(PK_Queues), FORCESEEK, UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE q.Name = @queue AND q.IsPaused = 0 AND q.IsActive = 1
            OPTION (MAXDOP 1, KEEPFIXED PLAN);

            IF @active IS NULL
            BEGIN
                -- Another worker counts, or an operator changes the queue.
                UPDATE @heads SET IsBusy = 1 WHERE Place = @place;
                SET @n = 0;
            END
            ELSE IF @max_workers IS NOT NULL
            BEGIN
                -- A statement of its own, after the lock: it sees every claim that was committed before.
                SELECT /* chokaq:fetch_next_batch */ @active = COUNT(*)
                FROM [chokaq].JobsHot AS h
                    WITH (INDEX(IX_JobsHot_QueueStats), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                WHERE h.Queue = @queue AND h.Status > 0
                OPTION (MAXDOP 1, KEEPFIXED PLAN);

                IF @max_workers - @active < @n
                    SET @n = CASE WHEN @max_workers > @active THEN @max_workers - @active ELSE 0 END;
                IF @n = 0
                    UPDATE @heads SET IsFull = 1 WHERE Place = @place;
            END
        END
        ELSE
        BEGIN
            IF @@TRANCOUNT = 0
            BEGIN
                BEGIN TRANSACTION;

                -- Shared, by name, before any row of JobsHot, and kept until the commit: whoever sets a limit or a pause
                -- waits for these claims, and whoever counts after it sees them.
                DELETE FROM @open;
                INSERT /* chokaq:fetch_next_batch */ INTO @open (Name)
                SELECT q.Name
                FROM @served AS s
                INNER LOOP JOIN [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, REPEATABLEREAD, ROWLOCK) ON q.Name = s.Name
                WHERE q.IsPaused = 0 AND q.IsActive = 1 AND q.MaxWorkers IS NULL
                    AND EXISTS (SELECT 1 FROM @heads AS d WHERE d.Name = s.Name AND d.IsLimited = 0)
                OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
            END

            IF NOT EXISTS (SELECT 1 FROM @open AS o WHERE o.Name = @queue)
            BEGIN
                UPDATE @heads SET IsBusy = 1 WHERE Place = @place;
                SET @n = 0;
            END
        END

        IF @n > 0
        BEGIN
            SET @from = COALESCE((SELECT MAX(c.Ord) FROM @claimed AS c), 0);

            INSERT /* chokaq:fetch_next_batch */ INTO @claimed (Seq, Place, Bytes)
            SELECT TOP (@n) h.Seq, @place, DATALENGTH(h.Payload)
            FROM [chokaq].JobsHot AS h
                WITH (INDEX(IX_JobsHot_Fetch), FORCESEEK, UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE h.Queue = @queue AND h.Status = 0 AND h.IsReady = 1 AND h.WorkerId IS NULL
            ORDER BY h.Priority DESC, h.ScheduledAtUtc, h.Seq
            OPTION (MAXDOP 1, KEEPFIXED PLAN, OPTIMIZE FOR (@n = 1));
            SET @got = @@ROWCOUNT;
            IF @got < @n
                UPDATE @heads SET IsExhausted = 1 WHERE Place = @place;

            -- Bytes end the batch, but one row is always allowed. None is skipped for a smaller one.
            SET @cut = NULL;
            SELECT @cut = MIN(t.Ord)
            FROM (
                SELECT c.Ord, SUM(c.Bytes) OVER (ORDER BY c.Ord ROWS UNBOUNDED PRECEDING) AS Total
                FROM @claimed AS c
            ) AS t
            WHERE t.Total > @max_bytes AND t.Ord > 1;
            IF @cut IS NOT NULL
            BEGIN
                DELETE FROM @claimed WHERE Ord >= @cut;
                SET @got = @got - @@ROWCOUNT;
                SET @is_full = 1;
            END

            IF @got > 0
                UPDATE /* chokaq:fetch_next_batch */ h
                SET Status = 1, WorkerId = @worker, LeaseId = @lease, FetchedAtUtc = @now
                FROM @claimed AS i
                INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
                WHERE i.Ord > @from AND h.Status = 0
                OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

            UPDATE @heads SET Taken = Taken + @got WHERE Place = @place;
            SET @left = @left - @got;
            IF @is_limited = 1
                SET @left_limited = @left_limited - @got;
        END

        IF @is_limited = 1
            COMMIT TRANSACTION;
    END

    SET @place = @place + 1;
    IF @place > @last
    BEGIN
        SET @place = 1;
        SET @pass = @pass + 1;
    END
END

IF @@TRANCOUNT > 0
    COMMIT TRANSACTION;

SELECT /* chokaq:fetch_next_batch */
    h.Seq, h.Id, h.LeaseId, h.Queue, h.Type, h.Payload, h.Tags, h.Priority, h.AttemptCount, h.MaxRetries, h.TimeoutMs,
    DATEDIFF_BIG(millisecond, '19700101', h.CreatedAtUtc) AS CreatedAtMs,
    DATEDIFF_BIG(millisecond, '19700101', h.ScheduledAtUtc) AS ScheduledAtMs,
    DATEDIFF_BIG(millisecond, h.UnknownSinceUtc, @now) AS UnknownForMs,
    DATEDIFF_BIG(millisecond, @now, h.DeadlineUtc) AS ExpiresInMs,
    ROW_NUMBER() OVER (PARTITION BY i.Place ORDER BY i.Ord) AS Turn, i.Place
FROM @claimed AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND h.LeaseId = @lease AND h.Status = 1
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

SELECT d.Name AS Queue, d.PassedOver + 1 AS PassedOver, d.IsBusy
FROM @heads AS d
WHERE d.Taken = 0 AND d.IsFull = 0;

IF @promoted = 1000
    SELECT CONVERT(bigint, 0) AS NextDueMs;
ELSE
    SELECT /* chokaq:fetch_next_batch */ (
        SELECT TOP (1) DATEDIFF_BIG(millisecond, @now, h.ScheduledAtUtc)
        FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Delayed), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
        WHERE h.Status = 0 AND h.IsReady = 0 AND h.ScheduledAtUtc > @now
        ORDER BY h.ScheduledAtUtc
    ) AS NextDueMs
    OPTION (MAXDOP 1, KEEPFIXED PLAN);
