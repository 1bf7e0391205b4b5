//! What workers tell of their circuits, and who reads it.

use rusqlite::named_params;

use crate::{
    model::{Circuit, CircuitReport, CircuitState, WorkerId},
    storage::sqlite::{
        failure::Outcome,
        fetch::rows,
        queries,
        row::Cells,
        tx::{Tx, ms},
    },
};

/// Replaces what the worker told before.
pub(super) fn report_circuits(
    tx: &Tx<'_>,
    worker: &WorkerId,
    reports: &[CircuitReport],
) -> Outcome<()> {
    let [delete, insert] = queries::REPORT_CIRCUITS.statements();
    let now = tx.now_ms();
    tx.statement(delete)?.execute(named_params! { "@worker": worker.as_str(), "@now": now })?;
    let mut insert = tx.statement(insert)?;
    for report in reports {
        insert.execute(named_params! {
            "@worker": worker.as_str(),
            "@type": report.job_type,
            "@state": report.state as u8,
            "@failures": report.failures,
            "@error": report.error,
            "@open_for_ms": ms(report.open_for),
            "@retry_in_ms": ms(report.retry_in),
            "@now": now,
        })?;
    }
    Ok(())
}

/// The circuits that are not closed.
pub(super) fn get_circuits(tx: &Tx<'_>) -> Outcome<Vec<Circuit>> {
    let mut statement = tx.statement(queries::GET_CIRCUITS.statement())?;
    let since = tx.now_ms().saturating_sub(ms(CircuitReport::FRESH));
    rows(statement.query(named_params! { "@since": since })?, |row| {
        let cells = Cells::new("Circuits", row);
        Ok(Circuit {
            job_type: cells.get(0)?,
            worker: cells.get(1)?,
            state: CircuitState::from_number(cells.get(2)?),
            failures: cells.number(3)?,
            error: cells.get(4)?,
            opened_at: cells.time(5)?,
            retry_at: cells.time(6)?,
            seen_at: cells.time(7)?,
        })
    })
}
