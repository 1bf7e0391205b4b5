//! Circuit breakers: what workers tell of theirs, and what a claimed row says of its lifetime.

use chokaq::model::{Circuit, CircuitReport, CircuitState};

use crate::prelude::*;

claims!(
    what_a_worker_tells_is_read_with_the_databases_times,
    a_report_takes_the_place_of_the_one_before_and_an_empty_one_ends_it,
    workers_and_types_have_circuits_of_their_own_byte_for_byte,
    the_circuits_of_a_worker_that_says_nothing_any_more_are_gone,
    a_report_whose_reply_was_lost_can_be_repeated,
    a_claimed_row_says_what_is_left_of_its_lifetime,
);

fn open(job_type: &str) -> CircuitReport {
    CircuitReport {
        job_type: job_type.to_owned(),
        state: CircuitState::Open,
        failures: 5,
        error: "it's down 🔌".to_owned(),
        open_for: SECOND * 90,
        retry_in: SECOND * 30,
    }
}

async fn tell(db: &Db, worker: &str, circuits: &[CircuitReport]) {
    let told = db.storage.report_circuits(WorkerId::new(worker), circuits.to_vec()).await;
    told.expect("the storage answers");
}

async fn circuits(db: &Db) -> Vec<Circuit> {
    db.storage.get_circuits().await.expect("the storage answers")
}

async fn names(db: &Db) -> Vec<(String, String)> {
    circuits(db).await.into_iter().map(|circuit| (circuit.job_type, circuit.worker)).collect()
}

async fn what_a_worker_tells_is_read_with_the_databases_times(db: &Db) {
    assert_eq!(circuits(db).await, []);
    let before = db.now().await;
    tell(db, "wörker", &[open("send")]).await;
    let after = db.now().await;
    let [circuit] = &circuits(db).await[..] else { panic!("one circuit") };
    assert_eq!((&*circuit.job_type, &*circuit.worker), ("send", "wörker"));
    assert_eq!((circuit.state, circuit.failures), (CircuitState::Open, 5));
    assert_eq!(circuit.error, open("send").error);
    assert!((before..=after).contains(&circuit.seen_at), "by the database's clock");
    assert_eq!(circuit.seen_at.since(circuit.opened_at), SECOND * 90);
    assert_eq!(circuit.retry_at.since(circuit.seen_at), SECOND * 30);
}

async fn a_report_takes_the_place_of_the_one_before_and_an_empty_one_ends_it(db: &Db) {
    tell(db, "w", &[open("a"), open("b")]).await;
    let half_open = CircuitReport { state: CircuitState::HalfOpen, ..open("b") };
    tell(db, "w", &[half_open, open("c")]).await;
    let found: Vec<_> = circuits(db).await.into_iter().map(|c| (c.job_type, c.state)).collect();
    assert_eq!(
        found,
        [("b".to_owned(), CircuitState::HalfOpen), ("c".to_owned(), CircuitState::Open)]
    );
    tell(db, "w", &[]).await;
    assert_eq!(circuits(db).await, []);
}

async fn workers_and_types_have_circuits_of_their_own_byte_for_byte(db: &Db) {
    tell(db, "w", &[open("send"), open("Send")]).await;
    tell(db, "W", &[open("send")]).await;
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(names(db).await, [pair("Send", "w"), pair("send", "W"), pair("send", "w")]);
    tell(db, "w", &[]).await;
    assert_eq!(names(db).await, [pair("send", "W")]);
}

async fn the_circuits_of_a_worker_that_says_nothing_any_more_are_gone(db: &Db) {
    tell(db, "dead", &[open("send")]).await;
    db.age_circuits(SECOND * 100).await;
    tell(db, "alive", &[open("send")]).await;
    assert_eq!(names(db).await.len(), 2);
    db.age_circuits(SECOND * 100).await;
    tell(db, "alive", &[open("send")]).await;
    assert_eq!(names(db).await, [("send".to_owned(), "alive".to_owned())]);
    // And the next word of another worker deletes what is an hour old.
    db.age_circuits(SECOND * 3_600).await;
    tell(db, "alive", &[]).await;
    assert_eq!(db.circuit_rows().await, 0);
}

async fn a_report_whose_reply_was_lost_can_be_repeated(db: &Db) {
    db.lose_replies(1);
    let lost = db.storage.report_circuits(WorkerId::new("w"), vec![open("send")]).await;
    assert!(lost.expect_err("the reply is lost").is_transient());
    tell(db, "w", &[open("send")]).await;
    assert_eq!(circuits(db).await.len(), 1);
}

async fn a_claimed_row_says_what_is_left_of_its_lifetime(db: &Db) {
    const DAY: Duration = Duration::from_hours(24);
    let young = db.enqueue(NewJob { max_age: DAY, ..job() }).await;
    let old = db.enqueue(NewJob { max_age: DAY, ..job() }).await;
    db.age(old, 2 * DAY).await;
    let fetched = db.fetch("w", 10).await;
    let left = |id| {
        let job = fetched.iter().find(|job| job.lease.job() == id).expect("it is fetched");
        job.expires_in
    };
    assert_eq!(left(old), Duration::ZERO);
    assert!(left(young) > DAY / 2 && left(young) <= DAY, "{:?}", left(young));
}
