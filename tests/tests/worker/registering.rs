//! Which types and queues a worker serves.

use chokaq::{Worker, prelude::*};

use crate::support::{Log, detail, memory, note, worker};

mod first {
    use chokaq::prelude::*;
    #[job(type_key = "clash", enqueue_only)]
    pub(super) struct One;
    impl Job for One {
        type Output = ();
        async fn run(self, _: &JobContext) -> Result<(), JobError> {
            Ok(())
        }
    }
}

mod second {
    use chokaq::prelude::*;
    #[job(type_key = "other", aliases = ["clash"], enqueue_only)]
    pub(super) struct Two;
    impl Job for Two {
        type Output = ();
        async fn run(self, _: &JobContext) -> Result<(), JobError> {
            Ok(())
        }
    }
}

#[tokio::test]
async fn two_types_with_one_key_are_refused_and_both_are_named() {
    let pool = memory().await;
    let error = worker(&pool).only::<(first::One, second::Two)>().build().expect_err("a clash");
    assert!(error.is_config());
    let text = error.to_string();
    for part in ["clash", "first::One", "second::Two", "registering.rs:"] {
        assert!(text.contains(part), "{text}");
    }
    worker(&pool).only::<(first::One,)>().build().expect("alone it is fine");
    worker(&pool)
        .only::<(first::One, first::One)>()
        .register::<first::One>()
        .build()
        .expect("the same type twice is no clash");
}

#[job(type_key = "renamed", aliases = ["old_name"])]
struct Renamed;

impl Job for Renamed {
    type Output = String;
    async fn run(self, ctx: &JobContext) -> Result<String, JobError> {
        Ok(ctx.job_type().to_owned())
    }
}

#[tokio::test]
async fn rows_with_an_older_key_are_run_by_the_type_that_has_it_as_an_alias() {
    let pool = memory().await;
    let id = pool.enqueue_raw("old_name", "null").await.unwrap().id;
    worker(&pool).only::<(Renamed,)>().build().unwrap().run_until_idle().await.unwrap();
    let output = detail(&pool, id).await.output::<String>().unwrap();
    assert_eq!(output.as_deref(), Some("old_name"));
}

#[tokio::test]
async fn a_worker_serves_the_queues_of_its_types_and_no_others() {
    let pool = memory().await;
    let log = Log::default();
    note("elsewhere").enqueue(&pool).queue("elsewhere").await.unwrap();
    note("here").enqueue(&pool).await.unwrap();
    let build = || worker(&pool).only::<(crate::support::Note,)>().state(log.clone());
    build().build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["here 1"]);
    build().queues(["*"]).build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["here 1", "elsewhere 1"]);
}

#[tokio::test]
async fn everything_with_the_attribute_is_served_without_being_named() {
    let pool = memory().await;
    let log = Log::default();
    note("found").enqueue(&pool).await.unwrap();
    let worker = Worker::builder(&pool).state(log.clone()).build().unwrap();
    worker.run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["found 1"]);
}

#[tokio::test]
async fn queue_names_that_cannot_be_are_refused() {
    let pool = memory().await;
    for bad in ["", " mail", "*", &"x".repeat(256)] {
        let error = worker(&pool).only::<(Renamed,)>().queues(["mail", bad]).build();
        assert!(error.is_err(), "{bad:?}");
    }
    assert!(worker(&pool).queues(Vec::<String>::new()).build().is_err());
}
