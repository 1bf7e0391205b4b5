//! Rows for the statements to find, made by the server from numbers, 100,000 at a time.

use chokaq::model::JobId;
use uuid::{Uuid, uuid};

use crate::{Failure, server::Server};

/// Whose rows the running and the fetched ones are.
pub(crate) const WORKER: &str = "proof";
pub(crate) const LEASE: Uuid = uuid!("0190a0b0-0000-7000-8000-000000000001");
pub(crate) const QUEUES: u64 = 10;
pub(crate) const LIMITED: &str = "limited";

const CHUNK: u64 = 100_000;

/// How many rows of each kind. `Type` names the kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) ready: u64,
    pub(crate) delayed: u64,
    /// Delayed and due: the next fetch promotes them.
    pub(crate) due: u64,
    pub(crate) fetched: u64,
    /// Fetched an hour ago.
    pub(crate) abandoned: u64,
    pub(crate) running: u64,
    /// Running, without a beat for two hours; as many of them are noted, half of those to be retried.
    pub(crate) silent: u64,
    pub(crate) archived: u64,
    pub(crate) dead: u64,
}

impl Sizes {
    /// A backlog of `rows`, and a fleet that is the same at every size.
    pub(crate) fn of(rows: u64) -> Self {
        Self {
            ready: rows,
            delayed: rows / 10,
            due: 500,
            fetched: 2_000,
            abandoned: 500,
            running: 4_000,
            silent: 1_000,
            archived: rows,
            dead: (rows / 10).max(2_000),
        }
    }

    /// Few rows, which statements that run at a time cannot but share.
    pub(crate) const CROWDED: Self = Self {
        ready: 60,
        delayed: 10,
        due: 20,
        fetched: 60,
        abandoned: 20,
        running: 80,
        silent: 20,
        archived: 0,
        dead: 60,
    };
}

/// Columns of a kind of JobsHot rows, as SQL over the number `x.n`.
struct Kind {
    name: &'static str,
    status: u8,
    is_ready: u8,
    scheduled: &'static str,
    lease: &'static str,
    fetched: &'static str,
    heartbeat: &'static str,
    suspect: &'static str,
    on_crash: &'static str,
}

const PENDING: Kind = Kind {
    name: "ready",
    status: 0,
    is_ready: 1,
    scheduled: "DATEADD(second, -(x.n % 3600), @now)",
    lease: "NULL",
    fetched: "NULL",
    heartbeat: "NULL",
    suspect: "NULL",
    on_crash: "0",
};

fn kinds(sizes: &Sizes) -> [(u64, Kind); 8] {
    let lease = "CONVERT(uniqueidentifier, '0190a0b0-0000-7000-8000-000000000001')";
    let held = Kind { status: 1, lease, fetched: "@now", ..PENDING };
    let running = Kind { name: "running", status: 2, heartbeat: "@now", ..held };
    let silent = Kind { name: "silent", heartbeat: "DATEADD(hour, -2, @now)", ..running };
    let noted =
        Kind { name: "noted", suspect: "DATEADD(hour, -1, @now)", on_crash: "x.n % 2", ..silent };
    [
        // The oldest rows are those that run: they have the lowest Seq.
        (sizes.running, Kind { ..running }),
        (sizes.silent, Kind { ..silent }),
        (sizes.silent, noted),
        (sizes.fetched, Kind { name: "fetched", ..held }),
        (sizes.abandoned, Kind { name: "abandoned", fetched: "DATEADD(hour, -1, @now)", ..held }),
        (
            sizes.due,
            Kind { name: "due", is_ready: 0, scheduled: "DATEADD(second, -1, @now)", ..PENDING },
        ),
        (
            sizes.delayed,
            Kind {
                name: "delayed",
                is_ready: 0,
                scheduled: "DATEADD(second, 3600 + x.n % 86400, @now)",
                ..PENDING
            },
        ),
        (sizes.ready, PENDING),
    ]
}

impl Kind {
    fn insert(&self) -> String {
        let Self {
            name,
            status,
            is_ready,
            scheduled,
            lease,
            fetched,
            heartbeat,
            suspect,
            on_crash,
        } = self;
        let worker = if *status == 0 { "NULL".to_owned() } else { format!("N'{WORKER}'") };
        let attempts = u8::from(*status == 2);
        format!(
            "INSERT INTO [chokaq].JobsHot (Id, Queue, Type, Status, IsReady, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs,
    OnCrash, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, WorkerId, LeaseId, FetchedAtUtc, StartedAtUtc, HeartbeatUtc,
    SuspectUtc, IdempotencyKey, CreatedBy, Tags, Payload)
SELECT NEWID(), CASE WHEN x.n % 20 = 19 THEN N'{LIMITED}' ELSE CONCAT(N'q', x.n % {QUEUES}) END, N'{name}', {status}, {is_ready},
    10 * (x.n % 3), {attempts}, 3, 900000, 86400000, {on_crash}, @now, {scheduled}, DATEADD(day, 2, @now), {worker}, {lease},
    {fetched}, {heartbeat}, {heartbeat}, {suspect}, CASE WHEN x.n % 4 = 0 THEN CONCAT(N'{name}-', x.n) END, N'mssql-proof',
    N'[\"proof\"]', CONCAT(N'{{\"n\":', x.n, N',\"text\":\"', REPLICATE(N'x', 60), N'\"}}')"
        )
    }
}

const ARCHIVE: &str = "INSERT INTO [chokaq].JobsArchive (Id, Queue, Type, Priority, AttemptCount, MaxRetries, CreatedAtUtc, ScheduledAtUtc,
    DeadlineUtc, StartedAtUtc, FinishedAtUtc, WorkerId, LeaseId, CreatedBy, Payload)
SELECT NEWID(), CONCAT(N'q', x.n % 10), N'archived', 10, 1, 3, @now, @now, @now, @now, DATEADD(second, -(x.n % 604800), @now),
    N'proof', NEWID(), N'mssql-proof', CONCAT(N'{\"n\":', x.n, N'}')";

const DEAD: &str = "INSERT INTO [chokaq].JobsDLQ (Id, Queue, Type, Priority, AttemptCount, MaxRetries, TimeoutMs, MaxAgeMs, OnCrash, CreatedAtUtc,
    ScheduledAtUtc, DeadlineUtc, StartedAtUtc, FailedAtUtc, Reason, Error, WorkerId, LeaseId, IdempotencyKey, CreatedBy, Errors, Payload)
SELECT NEWID(), CONCAT(N'q', x.n % 10), N'dead', 10, 4, 3, 900000, 86400000, 0, @now, @now, @now, @now,
    DATEADD(second, -(x.n % 2592000), @now), N'MaxRetriesExceeded', CONCAT(N'error ', x.n % 20), N'proof', NEWID(),
    CASE WHEN x.n % 4 = 0 THEN CONCAT(N'dead-', x.n) END, N'mssql-proof',
    N'[{\"attempt\":4,\"at_ms\":0,\"kind\":\"error\",\"text\":\"error\"}]', CONCAT(N'{\"n\":', x.n, N'}')";

/// Empties the tables and fills them.
pub(crate) async fn fill(server: &Server, sizes: &Sizes) -> Result<(), Failure> {
    server.run("the old rows", EMPTY).await?;
    server.run("the queues and counters", COUNTERS).await?;
    for (count, kind) in kinds(sizes) {
        insert(server, kind.name, &kind.insert(), count).await?;
    }
    insert(server, "archived", ARCHIVE, sizes.archived).await?;
    insert(server, "dead", DEAD, sizes.dead).await
}

async fn insert(server: &Server, what: &str, insert: &str, count: u64) -> Result<(), Failure> {
    for from in (0..count).step_by(usize::try_from(CHUNK)?) {
        let to = (from + CHUNK).min(count);
        let sql = format!(
            "DECLARE @now datetime2(3) = SYSUTCDATETIME();
WITH d AS (SELECT v.n FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS v (n)),
m AS (
    SELECT {from} + a.n + 10 * b.n + 100 * c.n + 1000 * e.n + 10000 * f.n AS n
    FROM d AS a CROSS JOIN d AS b CROSS JOIN d AS c CROSS JOIN d AS e CROSS JOIN d AS f
)
{insert}
FROM m AS x
WHERE x.n < {to}
ORDER BY x.n;"
        );
        server.run(&format!("the {what} rows"), &sql).await?;
        if count > CHUNK {
            eprintln!("  {what}: {to} of {count}");
        }
    }
    Ok(())
}

/// A row of JobsHot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HotRow {
    pub(crate) seq: i64,
    pub(crate) id: JobId,
}

/// Some rows of a kind.
pub(crate) async fn hot_rows(
    server: &Server,
    kind: &str,
    most: u64,
) -> Result<Vec<HotRow>, Failure> {
    let sql = format!(
        "SELECT TOP ({most}) h.Seq, h.Id FROM [chokaq].JobsHot AS h WHERE h.Type = N'{kind}' ORDER BY h.Seq;"
    );
    let rows = server.run("some rows", &sql).await?.first_set();
    rows.iter().map(|row| Ok(HotRow { seq: row.get(0)?, id: row.get(1)? })).collect()
}

/// Some ids of a history table.
pub(crate) async fn ids(server: &Server, table: &str, most: u64) -> Result<Vec<JobId>, Failure> {
    let sql = format!("SELECT TOP ({most}) x.Id FROM [chokaq].{table} AS x;");
    let rows = server.run("some ids", &sql).await?.first_set();
    rows.iter().map(|row| Ok(row.get(0)?)).collect()
}

const EMPTY: &str = "\
TRUNCATE TABLE [chokaq].JobsHot;
TRUNCATE TABLE [chokaq].JobsArchive;
TRUNCATE TABLE [chokaq].JobsDLQ;
TRUNCATE TABLE [chokaq].Queues;
TRUNCATE TABLE [chokaq].StatsSummary;
TRUNCATE TABLE [chokaq].MetricBuckets;";

/// Ten queues, one that is limited, one that is paused; buckets of a quarter of an hour.
const COUNTERS: &str = "\
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @bucket datetime2(3) = DATEADD(second, DATEDIFF(second, '20000101', @now) / 10 * 10, '20000101');
INSERT INTO [chokaq].Queues (Name, IsPaused, MaxWorkers, UpdatedAtUtc)
VALUES (N'q0', 0, NULL, @now), (N'q1', 0, NULL, @now), (N'q2', 0, NULL, @now), (N'q3', 0, NULL, @now), (N'q4', 0, NULL, @now),
    (N'q5', 0, NULL, @now), (N'q6', 0, NULL, @now), (N'q7', 0, NULL, @now), (N'q8', 0, NULL, @now), (N'q9', 0, NULL, @now),
    (N'limited', 0, 100000, @now), (N'paused', 1, NULL, @now);
INSERT INTO [chokaq].StatsSummary (Queue, Shard, SucceededTotal)
SELECT q.Name, s.Shard, 1
FROM [chokaq].Queues AS q
CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15)) AS s (Shard);
INSERT INTO [chokaq].MetricBuckets (BucketUtc, Queue, Shard, Succeeded)
SELECT DATEADD(second, -10 * (a.n + 10 * b.n), @bucket), q.Name, c.n, 1
FROM [chokaq].Queues AS q
CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS a (n)
CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS b (n)
CROSS JOIN (VALUES (0), (1), (2), (3)) AS c (n);";
