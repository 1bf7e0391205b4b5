//! Every call of the contract that makes statements, so that what holds for all is claimed of all.

use std::time::Duration;

use chokaq::{
    FailureReason, Result,
    model::{
        Beat, Finish, Lease, Outcome, Purge, QueueSettings, Release, ResurrectEdits, WorkerId,
        ZombieScan,
    },
    storage::{OperatorStorage, ProducerStorage, WorkerStorage, mssql::MssqlStorage},
};

use crate::{
    storage::{
        circuits::open_circuit,
        enqueue::job,
        finalise::{dead, retry, snooze, succeeded},
        stage::{WORKER, job_id, request},
    },
    within,
};

/// Each call by the statement that it makes first.
pub(crate) const CALLS: [&str; 29] = [
    "enqueue",
    "fetch_next_batch",
    "read_control",
    "mark_as_processing",
    "keep_alive",
    "release",
    "archive_succeeded",
    "move_to_dlq",
    "reschedule_for_retry",
    "snooze",
    "recover_abandoned",
    "retry_zombies",
    "report_circuits",
    "next_due",
    "find_job",
    "cancel_waiting",
    "resurrect",
    "set_queue",
    "purge_archive",
    "purge_dlq",
    "purge_buckets",
    "get_summary_stats",
    "get_queue_stats",
    "get_queue_health",
    "get_circuits",
    "get_throughput_stats",
    "get_top_dlq_errors",
    "get_archive_paged",
    "get_dlq_paged",
];

/// Makes one of the [`CALLS`].
pub(crate) async fn call(storage: &MssqlStorage, name: &str, lease: &Lease) -> Result<()> {
    let lease = lease.clone();
    let ids = vec![job_id(1)];
    let time = Duration::from_secs(20);
    let scan = ZombieScan { lease: time, suspicion: time, batch: 100 };
    let finalise = |outcome: Outcome| {
        let finish = Finish { lease: lease.clone(), outcome };
        async { within(storage.finalise(vec![finish])).await.map(drop) }
    };
    match name {
        "enqueue" => within(storage.enqueue(vec![job(1)])).await.map(drop),
        "fetch_next_batch" => within(storage.fetch_next_batch(request(5))).await.map(drop),
        "read_control" => within(storage.read_control(WorkerId::new(WORKER), None)).await.map(drop),
        "mark_as_processing" => within(storage.mark_as_processing(vec![lease])).await.map(drop),
        "keep_alive" => {
            within(storage.keep_alive(vec![Beat { lease, progress: None }])).await.map(drop)
        }
        "release" => {
            let release = Release { lease, delay: None, unknown_type: false };
            within(storage.release(vec![release])).await.map(drop)
        }
        "archive_succeeded" => finalise(succeeded()).await,
        "move_to_dlq" => finalise(dead(FailureReason::FatalError)).await,
        "reschedule_for_retry" => finalise(retry()).await,
        "snooze" => finalise(snooze()).await,
        "recover_abandoned" => within(storage.recover_abandoned(time, 100)).await.map(drop),
        "retry_zombies" => within(storage.archive_zombies(scan)).await.map(drop),
        "report_circuits" => {
            within(storage.report_circuits(WorkerId::new(WORKER), vec![open_circuit()])).await
        }
        "next_due" => within(storage.next_due(None, time)).await.map(drop),
        "find_job" => within(storage.find_job(ids[0])).await.map(drop),
        "cancel_waiting" => within(storage.cancel(ids, "why".to_owned())).await.map(drop),
        "resurrect" => within(storage.resurrect(ids, ResurrectEdits::default())).await.map(drop),
        "set_queue" => within(storage.set_queue("mail".to_owned(), QueueSettings::default())).await,
        "purge_archive" => within(storage.purge(Purge::Archive, time, 10)).await.map(drop),
        "purge_dlq" => within(storage.purge(Purge::DeadLetters, time, 10)).await.map(drop),
        "purge_buckets" => within(storage.purge(Purge::Buckets, time, 10)).await.map(drop),
        "get_summary_stats" => within(storage.get_summary_stats()).await.map(drop),
        "get_queue_stats" => within(storage.get_queue_stats()).await.map(drop),
        "get_queue_health" => within(storage.get_queue_health()).await.map(drop),
        "get_circuits" => within(storage.get_circuits()).await.map(drop),
        "get_throughput_stats" => within(storage.get_throughput_stats(time)).await.map(drop),
        "get_top_dlq_errors" => within(storage.get_top_dlq_errors(10)).await.map(drop),
        "get_archive_paged" => within(storage.get_archive_paged(None, None, 10)).await.map(drop),
        "get_dlq_paged" => within(storage.get_dlq_paged(None, None, 10)).await.map(drop),
        other => panic!("no call begins with {other:?}"),
    }
}
