//! What workers tell of their circuits, and who reads it.

use serde::Serialize;

use crate::{
    model::{Circuit, CircuitReport, CircuitState, WorkerId},
    storage::mssql::{
        batch::{Delay, json},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        reads::read,
        session::Role,
        statements::{GET_CIRCUITS, REPORT_CIRCUITS},
    },
};

#[derive(Serialize)]
struct Item<'a> {
    y: &'a str,
    st: u8,
    f: u32,
    e: &'a str,
    os: i32,
    rs: i32,
    rm: i32,
}

impl<'a> From<&'a CircuitReport> for Item<'a> {
    fn from(report: &'a CircuitReport) -> Self {
        let retry_in = Delay::from(report.retry_in);
        Self {
            y: &report.job_type,
            st: report.state as u8,
            f: report.failures,
            e: &report.error,
            os: Delay::from(report.open_for).s,
            rs: retry_in.s,
            rm: retry_in.ms,
        }
    }
}

/// Replaces what the worker told before.
pub(super) async fn report_circuits(
    core: &Core,
    worker: WorkerId,
    reports: Vec<CircuitReport>,
) -> Result<(), Failure> {
    let call = Call::new(&REPORT_CIRCUITS)
        .bind("worker", &worker)
        .bind("items", json(reports.iter().map(Item::from)));
    core.run(Role::Maintenance, Effort::Brief, &call).await?;
    Ok(())
}

/// The circuits that are not closed.
pub(super) async fn get_circuits(core: &Core) -> Result<Vec<Circuit>, Failure> {
    let call = Call::new(&GET_CIRCUITS).bind("fresh_s", Delay::from(CircuitReport::FRESH).s);
    read(core, call, |row| {
        Ok(Circuit {
            job_type: row.get(0)?,
            worker: row.get(1)?,
            state: CircuitState::from_number(row.get(2)?),
            failures: row.get(3)?,
            error: row.get(4)?,
            opened_at: row.get(5)?,
            retry_at: row.get(6)?,
            seen_at: row.get(7)?,
        })
    })
    .await
}
