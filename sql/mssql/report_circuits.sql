-- Caller: WorkerStorage::report_circuits, when a circuit opens or closes, and with the heartbeats while one is open.
-- Intent: this worker's circuits that are not closed, in place of those that it told of before. What a worker left an
--   hour ago goes too: it died.
-- Invariant: of the living, a worker changes its own rows only. The table holds as many rows as workers have circuits open.
-- Twin: one statement for each circuit.
-- Locks: Circuits. Its own rows; READPAST: a dead worker's row that another statement has locked is left to the next.
-- Retry: safe: a repeat replaces the same rows. 2627 (an earlier run is still at it): run it again.
-- @worker nvarchar(255)
-- @items nvarchar(max), [{"y": Type, "st": State, "f": Failures, "e": Error, "os": open for, in s, "rs": tried in s, "rm": and ms}]
-- Answers: nothing.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @in TABLE (
    Type nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY,
    State tinyint NOT NULL,
    Failures int NOT NULL,
    Error nvarchar(1000) COLLATE Latin1_General_100_BIN2 NOT NULL,
    OpenForS int NOT NULL,
    RetryInS int NOT NULL,
    RetryInMs int NOT NULL
);
INSERT INTO @in (Type, State, Failures, Error, OpenForS, RetryInS, RetryInMs)
SELECT j.Type, j.State, j.Failures, j.Error, j.OpenForS, j.RetryInS, j.RetryInMs
FROM OPENJSON(@items) WITH (
    Type nvarchar(255) '$.y',
    State tinyint '$.st',
    Failures int '$.f',
    Error nvarchar(1000) '$.e',
    OpenForS int '$.os',
    RetryInS int '$.rs',
    RetryInMs int '$.rm'
) AS j;

BEGIN TRANSACTION;

DELETE /* chokaq:report_circuits */ c
FROM [chokaq].Circuits AS c WITH (INDEX(IX_Circuits_Worker), FORCESEEK, ROWLOCK)
WHERE c.WorkerId = @worker
OPTION (MAXDOP 1, KEEPFIXED PLAN);

INSERT /* chokaq:report_circuits */ INTO [chokaq].Circuits
    (WorkerId, Type, State, Failures, Error, OpenedAtUtc, RetryAtUtc, SeenAtUtc)
SELECT @worker, i.Type, i.State, i.Failures, i.Error, DATEADD(second, -i.OpenForS, @now),
    DATEADD(millisecond, i.RetryInMs, DATEADD(second, i.RetryInS, @now)), @now
FROM @in AS i
OPTION (MAXDOP 1, KEEPFIXED PLAN);

COMMIT TRANSACTION;

DELETE /* chokaq:report_circuits */ c
FROM [chokaq].Circuits AS c WITH (INDEX(IX_Circuits_Seen), FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE c.SeenAtUtc < DATEADD(hour, -1, @now)
OPTION (MAXDOP 1, KEEPFIXED PLAN);
