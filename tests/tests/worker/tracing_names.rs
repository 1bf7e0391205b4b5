//! The names and fields that people's log searches rely on.

use std::{
    io,
    sync::{Arc, Mutex},
};

use chokaq::prelude::*;

use crate::support::{memory, worker};

#[job(queue = "spoken")]
struct Speak;

impl Job for Speak {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        tracing::info!("said inside");
        Ok(())
    }
}

#[derive(Debug, Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_a_handler_logs_stands_in_a_span_with_the_jobs_fields() {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _on_this_thread = tracing::subscriber::set_default(subscriber);
    let pool = memory().await;
    let id = Speak::enqueue(&pool).await.unwrap().id;
    worker(&pool).only::<(Speak,)>().build().unwrap().run_until_idle().await.unwrap();

    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    let span = format!("job{{job_id={id} job_type=speak queue=spoken attempt=1}}");
    let said = text.lines().find(|line| line.contains("said inside")).expect("it was logged");
    assert!(said.contains(&span), "{said}");
    assert!(text.contains("serves job_type=\"speak\""), "{text}");
}
