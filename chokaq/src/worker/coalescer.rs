//! Turns many single calls into few batches, without waiting for a timer.
//!
//! What is waiting when the previous batch returns goes out as the next one: an idle system adds no delay, a busy one
//! makes few round trips. (The same idea as group commit in databases; Solid Queue and River batch by timers instead.)

use std::future::Future;

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

/// The sending side. The worker behind it ends when the last clone is gone and everything sent is done.
#[derive(Debug)]
pub(crate) struct Coalescer<Q, A> {
    sender: mpsc::Sender<Item<Q, A>>,
}

/// Why a call got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

#[derive(Debug)]
struct Item<Q, A> {
    request: Q,
    reply: Option<oneshot::Sender<A>>,
}

/// What a coalescer does with a batch.
pub(crate) trait Batch<Q, A>: Send + 'static {
    /// Executes a batch and answers in its order: one answer per request, so that one that fails does not fail the
    /// others. An empty answer means that the batch was given up.
    ///
    /// An answer that nobody takes, because its caller was dropped before or after it was sent, is dropped: an answer
    /// that has to be undone says so by its `Drop`.
    fn execute(&mut self, requests: Vec<Q>) -> impl Future<Output = Vec<A>> + Send;
}

impl<Q: Send + 'static, A: Send + 'static> Coalescer<Q, A> {
    /// Starts one. At most `capacity` requests wait, and at most `largest` go out as one batch.
    pub(crate) fn spawn(
        capacity: usize,
        largest: usize,
        batch: impl Batch<Q, A>,
    ) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self { sender }, tokio::spawn(run(receiver, largest, batch)))
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn call(&self, request: Q) -> Result<A, Closed> {
        let (reply, answer) = oneshot::channel();
        self.send(Item { request, reply: Some(reply) }).await?;
        answer.await.map_err(|_| Closed)
    }

    /// Sends a request and waits only until it stands in the queue.
    pub(crate) async fn push(&self, request: Q) -> Result<(), Closed> {
        self.send(Item { request, reply: None }).await
    }

    /// Sends a request without waiting, from where nothing can wait; gives it back when the queue is full or closed.
    pub(crate) fn try_push(&self, request: Q) -> Result<(), Q> {
        self.sender.try_send(Item { request, reply: None }).map_err(|e| e.into_inner().request)
    }

    async fn send(&self, item: Item<Q, A>) -> Result<(), Closed> {
        self.sender.send(item).await.map_err(|_| Closed)
    }
}

impl<Q, A> Clone for Coalescer<Q, A> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone() }
    }
}

async fn run<Q: Send, A: Send>(
    mut receiver: mpsc::Receiver<Item<Q, A>>,
    largest: usize,
    mut batch: impl Batch<Q, A>,
) {
    let mut waiting = Vec::new();
    while receiver.recv_many(&mut waiting, largest).await > 0 {
        let (requests, replies): (Vec<_>, Vec<_>) =
            waiting.drain(..).map(|item| (item.request, item.reply)).unzip();
        let answers = batch.execute(requests).await;
        for (answer, reply) in answers.into_iter().zip(replies) {
            if let Some(reply) = reply {
                let _ = reply.send(answer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Semaphore;

    use super::*;

    /// An answer that notes when nobody took it.
    #[derive(Debug)]
    struct Answer {
        value: Option<Result<u32, String>>,
        untaken: Arc<Mutex<Vec<Result<u32, String>>>>,
    }

    impl Answer {
        fn take(mut self) -> Result<u32, String> {
            self.value.take().expect("taken once")
        }
    }

    impl Drop for Answer {
        fn drop(&mut self) {
            self.untaken.lock().unwrap().extend(self.value.take());
        }
    }

    /// Doubles even numbers and refuses odd ones. Says when a batch comes in, and holds it until the gate opens.
    struct Doubler {
        entered: mpsc::UnboundedSender<Vec<u32>>,
        gate: Arc<Semaphore>,
        untaken: Arc<Mutex<Vec<Result<u32, String>>>>,
    }

    impl Batch<u32, Answer> for Doubler {
        async fn execute(&mut self, requests: Vec<u32>) -> Vec<Answer> {
            let _ = self.entered.send(requests.clone());
            self.gate.acquire().await.expect("never closed").forget();
            let answer = |n: u32| Answer {
                value: Some(if n.is_multiple_of(2) {
                    Ok(2 * n)
                } else {
                    Err(format!("{n} is odd"))
                }),
                untaken: Arc::clone(&self.untaken),
            };
            requests.into_iter().map(answer).collect()
        }
    }

    struct Setup {
        coalescer: Coalescer<u32, Answer>,
        runner: JoinHandle<()>,
        entered: mpsc::UnboundedReceiver<Vec<u32>>,
        gate: Arc<Semaphore>,
        untaken: Arc<Mutex<Vec<Result<u32, String>>>>,
    }

    fn setup(largest: usize) -> Setup {
        let (sender, entered) = mpsc::unbounded_channel();
        let gate = Arc::new(Semaphore::new(0));
        let untaken = Arc::default();
        let doubler =
            Doubler { entered: sender, gate: Arc::clone(&gate), untaken: Arc::clone(&untaken) };
        let (coalescer, runner) = Coalescer::spawn(64, largest, doubler);
        Setup { coalescer, runner, entered, gate, untaken }
    }

    /// A call in a task of its own, its request already in the queue.
    async fn call(s: &Setup, n: u32) -> JoinHandle<Result<u32, String>> {
        let (reply, answer) = oneshot::channel::<Answer>();
        s.coalescer.send(Item { request: n, reply: Some(reply) }).await.expect("open");
        tokio::spawn(async move { answer.await.expect("answered").take() })
    }

    #[tokio::test]
    async fn what_waits_while_a_batch_is_out_goes_out_together_in_order() {
        let mut s = setup(100);
        let first = call(&s, 2).await;
        assert_eq!(s.entered.recv().await, Some(vec![2]));
        let mut rest = Vec::new();
        for n in [4, 6, 8] {
            rest.push(call(&s, n).await);
        }
        s.gate.add_permits(2);
        assert_eq!(s.entered.recv().await, Some(vec![4, 6, 8]));
        assert_eq!(first.await.expect("answered"), Ok(4));
        for (call, answer) in rest.into_iter().zip([8, 12, 16]) {
            assert_eq!(call.await.expect("answered"), Ok(answer));
        }
    }

    #[tokio::test]
    async fn one_item_that_fails_does_not_fail_its_batch() {
        let s = setup(100);
        s.gate.add_permits(10);
        let (even, odd) = tokio::join!(s.coalescer.call(4), s.coalescer.call(5));
        assert_eq!(even.expect("answered").take(), Ok(8));
        assert_eq!(odd.expect("answered").take(), Err("5 is odd".to_owned()));
    }

    #[tokio::test]
    async fn the_answer_of_a_caller_that_is_gone_is_dropped_whether_it_went_before_or_after() {
        let mut s = setup(100);
        let before = call(&s, 6).await;
        assert_eq!(s.entered.recv().await, Some(vec![6]));
        before.abort();
        assert!(before.await.expect_err("aborted").is_cancelled());
        s.gate.add_permits(3);
        assert_eq!(s.coalescer.call(8).await.expect("answered").take(), Ok(16));
        assert_eq!(*s.untaken.lock().unwrap(), [Ok(12)]);

        let (reply, answer) = oneshot::channel::<Answer>();
        s.coalescer.send(Item { request: 10, reply: Some(reply) }).await.expect("open");
        assert_eq!(s.coalescer.call(2).await.expect("answered").take(), Ok(4));
        drop(answer);
        assert_eq!(*s.untaken.lock().unwrap(), [Ok(12), Ok(20)]);
    }

    #[tokio::test]
    async fn a_batch_is_never_larger_than_the_limit_and_nobody_is_overtaken() {
        let mut s = setup(3);
        for n in 0..10 {
            s.coalescer.push(n).await.expect("open");
        }
        s.gate.add_permits(100);
        drop(s.coalescer);
        s.runner.await.expect("ends by itself");
        let mut batches = Vec::new();
        while let Some(batch) = s.entered.recv().await {
            batches.push(batch);
        }
        assert!(batches.iter().all(|batch| batch.len() <= 3), "{batches:?}");
        assert_eq!(batches.concat(), (0..10).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn what_was_sent_before_the_end_is_still_done_and_later_calls_are_told() {
        let mut s = setup(100);
        s.coalescer.push(2).await.expect("open");
        s.gate.add_permits(1);
        drop(s.coalescer);
        s.runner.await.expect("ends by itself");
        assert_eq!(s.entered.recv().await, Some(vec![2]));

        let s = setup(100);
        s.runner.abort();
        assert!(s.runner.await.expect_err("aborted").is_cancelled());
        assert_eq!(s.coalescer.call(2).await.expect_err("closed"), Closed);
        assert_eq!(s.coalescer.try_push(2), Err(2));
    }
}
