-- Circuit breakers that are not closed, as the workers tell of them: for people to see, nothing decides by it.
--
-- Twin: sql/mssql/migrations/0003_circuits.sql.

CREATE TABLE Circuits (
    WorkerId TEXT NOT NULL,
    Type TEXT NOT NULL,
    -- 1 open, 2 half-open.
    State INTEGER NOT NULL,
    -- Since the last success.
    Failures INTEGER NOT NULL,
    -- The last error's text.
    Error TEXT NOT NULL,
    OpenedAtUtc INTEGER NOT NULL,
    -- When a job of the type is tried next.
    RetryAtUtc INTEGER NOT NULL,
    -- When the worker last told of it.
    SeenAtUtc INTEGER NOT NULL,
    PRIMARY KEY (WorkerId, Type)
) STRICT, WITHOUT ROWID;
