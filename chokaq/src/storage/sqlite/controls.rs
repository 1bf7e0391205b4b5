//! What a worker asks beside its jobs: what is stopped, what is cancelled, when there is more to do.

use std::{collections::HashMap, time::Duration};

use rusqlite::{Row, named_params};

use crate::{
    model::{Control, Timestamp, WorkerId},
    storage::sqlite::{
        failure::Outcome,
        fetch::{heads, room, rows},
        queries,
        row::Cells,
        tx::{Tx, array, ms},
    },
};

/// What is set on queues, and asked cancels.
pub(super) fn read_control(
    tx: &Tx<'_>,
    worker: &WorkerId,
    queues: Option<&[String]>,
) -> Outcome<Control> {
    let [of_some, of_all, cancels] = queries::READ_CONTROL.statements();
    let setting = |row: &Row<'_>| {
        let cells = Cells::new("Queues", row);
        let lease = cells.get::<Option<i64>>(2)?.map(|_| cells.duration(2)).transpose()?;
        Ok((cells.get(0)?, cells.get(1)?, lease))
    };
    let settings = match queues {
        None => rows(tx.statement(of_all)?.query([])?, setting)?,
        Some(queues) => {
            let queues = array(queues.iter().cloned());
            rows(tx.statement(of_some)?.query(named_params! { "@queues": queues })?, setting)?
        }
    };
    let mut statement = tx.statement(cancels)?;
    let cancels = statement.query(named_params! { "@worker": worker.as_str() })?;
    let cancels = rows(cancels, |row| Cells::new("JobsHot", row).job(0))?;
    Ok(Control::new(settings, cancels))
}

/// When the queues have something to claim: now, or when the first delayed row of theirs is due.
pub(super) fn next_due(
    tx: &Tx<'_>,
    queues: Option<&[String]>,
    horizon: Duration,
) -> Outcome<Option<Duration>> {
    if heads(tx, queues)?.iter().any(|head| head.room != Some(0)) {
        return Ok(Some(Duration::ZERO));
    }
    let [open, delayed] = queries::NEXT_DUE.statements();
    let mut statement = tx.statement(open)?;
    let open: Vec<(String, Option<i64>)> = rows(statement.query([])?, |row| {
        let cells = Cells::new("Queues", row);
        Ok((cells.get(0)?, cells.get(1)?))
    })?;
    // Whether a queue has room is asked once, and only of those that have a delayed row.
    let mut open: HashMap<String, (Option<i64>, Option<bool>)> = open
        .into_iter()
        .filter(|(name, _)| queues.is_none_or(|queues| queues.contains(name)))
        .map(|(name, max_workers)| (name, (max_workers, None)))
        .collect();
    let until = tx.now_ms().saturating_add(ms(horizon));
    let mut statement = tx.statement(delayed)?;
    let mut walk = statement.query(named_params! { "@until": until })?;
    let (mut last, mut walked) = (None, 0);
    while let Some(row) = walk.next()? {
        let cells = Cells::new("JobsHot", row);
        let (due, queue) = (cells.time(0)?, cells.get::<String>(1)?);
        (last, walked) = (Some(due), walked + 1);
        if let Some((max_workers, has_room)) = open.get_mut(&queue) {
            let has_room = match (*has_room, *max_workers) {
                (Some(known), _) => known,
                (None, None) => true,
                (None, Some(max)) => *has_room.insert(room(tx, &queue, max)? > 0),
            };
            if has_room {
                return Ok(Some(wait(tx, due)));
            }
        }
    }
    Ok(last.filter(|_| walked == WALKED_AT_MOST).map(|due| wait(tx, due)))
}

/// As `next_due.sql` limits it.
const WALKED_AT_MOST: u32 = 10_000;

fn wait(tx: &Tx<'_>, due: Timestamp) -> Duration {
    due.since(Timestamp::from_unix_ms(tx.now_ms()))
}
