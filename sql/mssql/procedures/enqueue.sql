-- Caller: producers that are not Rust, and whoever wants a job to be there if, and only if, their own transaction
--   commits: EXEC chokaq.Enqueue @Type = N'send_receipt', @Payload = N'{"order_id": 7}'.
-- Intent: one Pending row, as enqueue.sql makes it. Workers are not woken: an idle one finds it at its next poll (1 s
--   by default), after the caller's commit.
-- Invariant: what enqueue.sql protects: a job is in one table only, an active key of a type is held once, and a call
--   repeated with its own @Id finds its first run. Text that a worker would not read as it was written is refused.
-- Twin: none; SQLite has no procedures. Where no transaction is open it has its own, otherwise it is part of the
--   caller's and neither commits nor rolls it back. It is the same under every isolation level: what it reads it reads
--   committed and keeps no lock on, a snapshot hides nothing from it, and there is no READPAST in it (650 under
--   SERIALIZABLE). The SETs below end with the procedure.
-- Locks: Queues > Hot > Archive > DLQ. Waits only for a row with the same id or key, or for a new queue's row. What it
--   inserts stays locked until the caller's transaction ends: the row of a queue's first job too, which claims
--   pass over.
-- Retry: safe with the same @Id. 2601 and 2627 are met here: the holder is looked for again. 1205 is the caller's: two
--   transactions that enqueue the same keys in another order.
-- Answers: @Id, the new job's or that of the active job that holds the key; @IsDuplicate. A bad argument is error
--   50001, and nothing was done.
-- This file is not run: the migration that last changed the procedure holds the same text, and a test compares them.
CREATE PROCEDURE [chokaq].Enqueue
    @Type nvarchar(4000),
    -- JSON text; the default is the payload of a job without fields.
    @Payload nvarchar(max) = N'null',
    @Queue nvarchar(4000) = N'default',
    -- Higher is fetched first within a queue.
    @Priority int = 10,
    -- Due this long from now, or at this time; a time in the past means now.
    @DelayMs bigint = NULL,
    @DueAtUtc datetime2(3) = NULL,
    @IdempotencyKey nvarchar(4000) = NULL,
    -- A JSON array of strings.
    @Tags nvarchar(4000) = NULL,
    @CreatedBy nvarchar(4000) = NULL,
    @MaxRetries int = 3,
    @TimeoutMs bigint = 900000,
    @MaxAgeMs bigint = 86400000,
    -- What becomes of it when its worker dies: dead_letter or retry.
    @OnCrash nvarchar(4000) = N'dead_letter',
    -- Given: a repeated call recognises itself by it.
    @Id uniqueidentifier = NULL OUTPUT,
    @IsDuplicate bit = NULL OUTPUT
AS
BEGIN
    -- What filtered indexes ask of a writer (1934), also where an old driver logs in without.
    SET NOCOUNT, ANSI_WARNINGS, ANSI_PADDING, ARITHABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET NUMERIC_ROUNDABORT OFF;

    -- NULL is the default, whoever writes it.
    SELECT @Payload = COALESCE(@Payload, N'null'), @Queue = COALESCE(@Queue, N'default'),
        @Priority = COALESCE(@Priority, 10), @DelayMs = COALESCE(@DelayMs, 0), @MaxRetries = COALESCE(@MaxRetries, 3),
        @TimeoutMs = COALESCE(@TimeoutMs, 900000), @MaxAgeMs = COALESCE(@MaxAgeMs, 86400000),
        @OnCrash = COALESCE(@OnCrash, N'dead_letter'), @IsDuplicate = 0;

    -- 50 years, the limit of the programs.
    DECLARE @longest_ms bigint = 1576800000000, @has_id bit = CASE WHEN @Id IS NULL THEN 0 ELSE 1 END;
    DECLARE @now datetime2(3) = SYSUTCDATETIME(), @due datetime2(3), @problem nvarchar(2000);

    -- Parameters are longer than their columns, so that nothing is cut before it is measured; DATALENGTH, as LEN does
    -- not count blanks at the end.
    SELECT TOP (1) @problem = CONCAT(n.Name, N' ', CASE
            WHEN DATALENGTH(n.Value) = 0 THEN N'is empty: give it at least one character'
            WHEN DATALENGTH(n.Value) / 2 > 255
                THEN CONCAT(N'has ', DATALENGTH(n.Value) / 2, N' characters; the limit is 255: use a shorter one')
            ELSE N'has white space at an end: trim it'
        END)
    FROM (
        VALUES (1, N'@Type', COALESCE(@Type, N'')), (2, N'@Queue', @Queue), (3, N'@IdempotencyKey', @IdempotencyKey),
            (4, N'@CreatedBy', @CreatedBy)
    ) AS n (Place, Name, Value)
    WHERE DATALENGTH(n.Value) = 0 OR DATALENGTH(n.Value) / 2 > 255
        OR EXISTS (
            SELECT 1
            FROM (VALUES (UNICODE(LEFT(n.Value, 1))), (UNICODE(RIGHT(n.Value, 1)))) AS e (Code)
            WHERE e.Code IN (32, 133, 160, 5760, 8232, 8233, 8239, 8287, 12288) OR e.Code BETWEEN 9 AND 13
                OR e.Code BETWEEN 8192 AND 8202
        )
    ORDER BY n.Place;

    IF @problem IS NULL
        SET @problem = CASE
            WHEN DATALENGTH(@Payload) / 2 > 1000000
                THEN CONCAT(N'@Payload has ', DATALENGTH(@Payload) / 2, N' characters; the limit is 1,000,000: store the data elsewhere and enqueue a reference')
            -- In brackets: ISJSON takes no bare number, text or null.
            WHEN ISJSON(CONCAT(N'[', @Payload, N']')) = 0 THEN N'@Payload is not JSON: pass JSON text'
            WHEN DATALENGTH(@Tags) / 2 > 1000
                THEN CONCAT(N'@Tags takes ', DATALENGTH(@Tags) / 2, N' characters; the limit is 1,000: use fewer or shorter tags')
            WHEN ISJSON(@Tags) = 0 OR LEFT(LTRIM(@Tags), 1) <> N'['
                THEN N'@Tags is no JSON array of strings: write it as N''["orders", "eu"]'''
            WHEN @OnCrash COLLATE Latin1_General_100_BIN2 NOT IN (N'dead_letter', N'retry')
                THEN N'@OnCrash is neither dead_letter nor retry: use one of the two'
            WHEN @MaxRetries < 0 THEN N'@MaxRetries is negative: use 0 for a job that is not retried'
            WHEN @TimeoutMs <= 0 OR @TimeoutMs > @longest_ms
                THEN N'@TimeoutMs is not between 1 and 1,576,800,000,000 (50 years): use a time limit in that range'
            WHEN @MaxAgeMs <= 0 OR @MaxAgeMs > @longest_ms
                THEN N'@MaxAgeMs is not between 1 and 1,576,800,000,000 (50 years): use an age in that range'
            WHEN @DelayMs < 0 OR @DelayMs > @longest_ms OR DATEDIFF_BIG(second, @now, @DueAtUtc) > @longest_ms / 1000
                THEN N'@DelayMs or @DueAtUtc is not between now and 50 years from now: choose another due time'
            WHEN @DelayMs > 0 AND @DueAtUtc IS NOT NULL
                THEN N'@DelayMs and @DueAtUtc were both given: give one of them'
        END;

    -- The brackets let `1, 2` and nothing at all pass; and a tag is as a name is.
    IF @problem IS NULL
    BEGIN
        IF (SELECT COUNT(*) FROM OPENJSON(CONCAT(N'[', @Payload, N']'))) <> 1
            SET @problem = N'@Payload is not JSON: pass JSON text';
        IF EXISTS (
            SELECT 1
            FROM OPENJSON(@Tags) AS t
            WHERE t.[type] <> 1 OR DATALENGTH(t.[value]) = 0 OR DATALENGTH(t.[value]) <> DATALENGTH(LTRIM(RTRIM(t.[value])))
        )
            SET @problem = N'@Tags holds something that is no text, is empty, or has white space at an end: mend that tag';
        IF NOT EXISTS (SELECT 1 FROM OPENJSON(@Tags))
            SET @Tags = NULL;
    END;

    -- Half of a surrogate pair is no text: a worker would read another character. Babelfish cannot store it anyway.
    IF @problem IS NULL AND SERVERPROPERTY('BabelfishVersion') IS NULL
    BEGIN
        DECLARE @high nvarchar(3) = CONVERT(nvarchar(3), 0x00D82D00FFDB), @low nvarchar(3) = CONVERT(nvarchar(3), 0x00DC2D00FFDF);
        SELECT TOP (1) @problem = CONCAT(n.Name, N' has half of a surrogate pair: pass whole characters')
        FROM (
            VALUES (N'@Type', @Type), (N'@Payload', @Payload), (N'@Queue', @Queue), (N'@IdempotencyKey', @IdempotencyKey),
                (N'@Tags', @Tags), (N'@CreatedBy', @CreatedBy)
        ) AS n (Name, Value)
        WHERE CONCAT(n.Value, N' ') LIKE CONCAT(N'%[', @high, N'][^', @low, N']%') COLLATE Latin1_General_100_BIN2
            OR CONCAT(N' ', n.Value) LIKE CONCAT(N'%[^', @high, N'][', @low, N']%') COLLATE Latin1_General_100_BIN2;
    END;

    IF @problem IS NOT NULL
    BEGIN
        SET @problem = CONCAT(N'chokaq.Enqueue: ', REPLACE(@problem, N'%', N'%%'));
        THROW 50001, @problem, 1;
    END;

    IF @has_id = 0
        SET @Id = NEWID();

    -- A transaction of its own where none is open and none begins by itself (IMPLICIT_TRANSACTIONS).
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 AND @@OPTIONS & 2 = 0 THEN 1 ELSE 0 END;
    DECLARE @seq bigint, @holder uniqueidentifier, @runs int = 0, @is_done bit = 0;

    -- A taken key is an error of the INSERT, which must not doom the caller's transaction; its own it may. A caller whose
    -- driver cancels the call rolls back itself, as drivers do.
    IF @own = 1
        SET XACT_ABORT ON;
    ELSE
        SET XACT_ABORT OFF;

    WHILE @is_done = 0
    BEGIN
        BEGIN TRY
            SELECT @runs = @runs + 1, @seq = NULL, @holder = NULL, @now = SYSUTCDATETIME();
            SET @due = CASE
                WHEN @DueAtUtc > @now THEN @DueAtUtc
                ELSE DATEADD(millisecond, CONVERT(int, @DelayMs % 86400000), DATEADD(day, CONVERT(int, @DelayMs / 86400000), @now))
            END;

            INSERT /* chokaq:enqueue_procedure */ INTO [chokaq].Queues (Name, UpdatedAtUtc)
            SELECT s.Name, @now
            FROM (SELECT @Queue AS Name) AS s
            WHERE NOT EXISTS (
                SELECT 1 FROM [chokaq].Queues AS q WITH (INDEX(PK_Queues), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                WHERE q.Name = @Queue
            )
            OPTION (MAXDOP 1, KEEPFIXED PLAN);

            IF @own = 1
                BEGIN TRANSACTION;

            INSERT /* chokaq:enqueue_procedure */ INTO [chokaq].JobsHot (
                Id, Queue, Type, Status, IsReady, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash,
                CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, IdempotencyKey, CreatedBy, Tags, Payload
            )
            SELECT
                i.Id, @Queue, @Type, 0, CASE WHEN @due > @now THEN 0 ELSE 1 END, @Priority, 0, @MaxRetries, @TimeoutMs,
                @MaxAgeMs, CASE WHEN @OnCrash COLLATE Latin1_General_100_BIN2 = N'retry' THEN 1 ELSE 0 END, @now, @due,
                DATEADD(millisecond, CONVERT(int, @MaxAgeMs % 86400000), DATEADD(day, CONVERT(int, @MaxAgeMs / 86400000), @due)),
                @IdempotencyKey, @CreatedBy, @Tags, @Payload
            FROM (SELECT @Id AS Id) AS i
            WHERE NOT EXISTS (
                    SELECT 1 FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE h.Id = i.Id
                )
                AND NOT EXISTS (
                    SELECT 1 FROM [chokaq].JobsHot AS k
                        WITH (INDEX(IX_JobsHot_Idempotency), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE k.Type = @Type AND k.IdempotencyKey = @IdempotencyKey AND k.IdempotencyKey IS NOT NULL
                )
            OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
            IF @@ROWCOUNT = 1
                SELECT @seq = SCOPE_IDENTITY(), @is_done = 1;

            -- An id that was given may have been through: then the row just inserted goes again.
            IF @seq IS NOT NULL AND @has_id = 1
                DELETE /* chokaq:enqueue_procedure */ h
                FROM [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK)
                WHERE h.Seq = @seq AND h.Status = 0
                    AND (
                        EXISTS (
                            SELECT 1 FROM [chokaq].JobsArchive AS a
                                WITH (INDEX(IX_JobsArchive_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                            WHERE a.Id = @Id
                        )
                        OR EXISTS (
                            SELECT 1 FROM [chokaq].JobsDLQ AS d
                                WITH (INDEX(IX_JobsDLQ_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                            WHERE d.Id = @Id
                        )
                    )
                OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);

            -- Not inserted: it is there itself or has been through, or another job holds the key. Where none of it is
            -- true any more the holder has just finished, and the next run inserts.
            IF @seq IS NULL
            BEGIN
                IF EXISTS (
                    SELECT 1 FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE h.Id = @Id
                    UNION ALL
                    SELECT 1 FROM [chokaq].JobsArchive AS a
                        WITH (INDEX(IX_JobsArchive_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE a.Id = @Id
                    UNION ALL
                    SELECT 1 FROM [chokaq].JobsDLQ AS d
                        WITH (INDEX(IX_JobsDLQ_Id), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE d.Id = @Id
                )
                    SET @is_done = 1;
                ELSE
                    SELECT /* chokaq:enqueue_procedure */ @holder = k.Id, @is_done = 1
                    FROM [chokaq].JobsHot AS k
                        WITH (INDEX(IX_JobsHot_Idempotency), FORCESEEK, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE k.Type = @Type AND k.IdempotencyKey = @IdempotencyKey AND k.IdempotencyKey IS NOT NULL
                    OPTION (MAXDOP 1, KEEPFIXED PLAN);
            END;

            IF @own = 1
                COMMIT TRANSACTION;
        END TRY
        BEGIN CATCH
            IF @own = 1 AND XACT_STATE() <> 0
                ROLLBACK TRANSACTION;
            SET @is_done = 0;
            -- Another session was faster with the id, the key or the queue: the next run finds what it made.
            IF ERROR_NUMBER() NOT IN (2601, 2627) OR XACT_STATE() = -1 OR @runs >= 20
                THROW;
        END CATCH;

        IF @is_done = 0 AND @runs >= 20
            THROW 50002, N'chokaq.Enqueue: the idempotency key was taken and freed again at each of 20 runs: call again', 1;
    END;

    IF @holder IS NOT NULL
        SELECT @Id = @holder, @IsDuplicate = 1;
END;
