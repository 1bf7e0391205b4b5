//! What becomes of a claimed row that has a permit: it starts, it is refused, or it goes back.

use std::sync::Arc;

use crate::{
    job::JobError,
    model::{FetchedJob, Release},
    worker::{
        circuits::{Admission, Evidence},
        limiter::Permit,
        release::release,
        shared::Shared,
    },
};

/// The three ways.
pub(crate) enum Plan {
    /// Its type is unknown here: another worker may know it.
    PassOn,
    /// Its type's circuit is open.
    HoldBack,
    Start(Start),
}

/// What a job is marked for.
pub(crate) enum Start {
    Run(Ticket),
    /// User code does not run.
    Refuse(JobError),
}

/// A job's admission by its type's circuit. Dropped without a word, a probe lets the next one try.
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    job_type: &'static str,
    is_probe: bool,
}

impl Ticket {
    fn new(shared: &Arc<Shared>, job_type: &'static str, is_probe: bool) -> Self {
        Self { shared: Arc::clone(shared), job_type, is_probe }
    }

    pub(crate) fn ended(mut self, evidence: Evidence) {
        self.shared.circuits.ended(self.job_type, self.is_probe, evidence);
        self.is_probe = false;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_probe {
            self.shared.circuits.ended(self.job_type, true, Evidence::Nothing);
        }
    }
}

/// Looks at a claimed row before it is marked.
pub(crate) fn plan(shared: &Arc<Shared>, job: &FetchedJob) -> Plan {
    let Some(known) = shared.registry.get(&job.job_type) else {
        let grace = shared.settings.unknown_grace;
        if job.unknown_for.unwrap_or_default() < grace {
            return Plan::PassOn;
        }
        return Plan::Start(Start::Refuse(JobError::rejected(format!(
            "no worker of its queue knows the type {:?}; it was tried for {}",
            job.job_type,
            humantime::format_duration(grace)
        ))));
    };
    let key = known.job_type.key;
    match shared.circuits.admit(key) {
        Admission::Run => Plan::Start(Start::Run(Ticket::new(shared, key, false))),
        Admission::Probe => Plan::Start(Start::Run(Ticket::new(shared, key, true))),
        Admission::Wait(_) if job.expires_in.is_zero() => {
            Plan::Start(Start::Refuse(JobError::circuit_open(format!(
                "the circuit of the type {key:?} was still open when the job's lifetime ended"
            ))))
        }
        Admission::Wait(_) => Plan::HoldBack,
    }
}

/// A row of a type that this worker does not know goes back: a worker of another version may know it.
pub(crate) async fn pass_on(shared: Arc<Shared>, job: FetchedJob, permit: Permit) {
    tracing::warn!(
        job_id = %job.lease.job(),
        job_type = %job.job_type,
        queue = %job.queue,
        "job of a type that this worker does not know goes back"
    );
    let delay = Some(shared.settings.unknown_delay);
    release(&shared, vec![Release { lease: job.lease, delay, unknown_type: true }]).await;
    drop(permit);
}
