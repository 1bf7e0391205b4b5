//! What a worker asks beside its jobs: what is stopped, what is cancelled, when there is more to do.

use std::time::Duration;

use crate::{
    model::{Control, WorkerId},
    storage::mssql::{
        answer::Row,
        batch::{Delay, json},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statements::{NEXT_DUE, READ_CONTROL},
    },
};

/// What is set on queues, and asked cancels.
pub(super) async fn read_control(
    core: &Core,
    worker: WorkerId,
    queues: Option<Vec<String>>,
) -> Result<Control, Failure> {
    let call =
        Call::new(&READ_CONTROL).bind("queues", names(queues.as_deref())).bind("worker", &worker);
    let [settings, cancels] = core.run(Role::Worker, Effort::Brief, &call).await?.sets()?;
    control(&settings, &cancels)
}

/// When the queues have something to claim.
pub(super) async fn next_due(
    core: &Core,
    queues: Option<Vec<String>>,
    horizon: Duration,
) -> Result<Option<Duration>, Failure> {
    let horizon = Delay::from(horizon);
    let call = Call::new(&NEXT_DUE)
        .bind("queues", names(queues.as_deref()))
        .bind("horizon_s", horizon.s)
        .bind("horizon_ms", horizon.ms);
    let rows = core.run(Role::Worker, Effort::Brief, &call).await?.rows()?;
    Ok(rows.first().map(|row| row.get(0)).transpose()?.flatten())
}

/// The two result sets of a control read.
pub(super) fn control(settings: &[Row], cancels: &[Row]) -> Result<Control, Failure> {
    let setting = |row: &Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let settings: Vec<_> = settings.iter().map(setting).collect::<Result<_, Failure>>()?;
    let cancels = cancels.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?;
    Ok(Control::new(settings, cancels))
}

/// Queues as the statements take them; NULL for all.
pub(super) fn names(queues: Option<&[String]>) -> Option<String> {
    queues.map(json)
}
