//! The threads that run guests: a few fast ones, and one for calls that take long.
//!
//! A call that was interrupted [`FAST_TICKS`] times goes on in the slow lane. So guests that spin
//! share one thread among themselves, and those that end soon never wait behind them.

use std::{future::Future, io, pin::Pin, task::Poll};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::{AbortHandle, JoinHandle},
};

use crate::limits::FAST_TICKS;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The threads that run guests.
pub(crate) struct Lanes {
    fast: Option<Runtime>,
    slow: Option<Runtime>,
}

/// The host stops, or the task panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

/// Ends the task when nobody waits for it any more.
struct EndOnDrop(AbortHandle);

enum Fast<T> {
    Done(T),
    TooSlow(Boxed<T>),
}

impl Lanes {
    /// Starts the threads.
    ///
    /// # Errors
    /// When there are no threads to be had.
    pub(crate) fn new(workers: usize) -> io::Result<Self> {
        let lane = |name: &str, workers: usize| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers).thread_name(name).max_blocking_threads(1);
            builder.event_interval(1).global_queue_interval(1).enable_time().build()
        };
        Ok(Self { fast: Some(lane("plugin", workers)?), slow: Some(lane("plugin-slow", 1)?) })
    }

    /// Runs a call to its end, first in a fast lane. Dropping the returned future ends the call.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Lost> {
        let (Some(fast), Some(slow)) = (&self.fast, &self.slow) else { return Err(Lost) };
        joined(fast.spawn(begin(Box::pin(call), slow.handle().clone()))).await?
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // Dropping a runtime waits for its tasks, which is forbidden on a thread of another runtime.
        for runtime in [self.fast.take(), self.slow.take()].into_iter().flatten() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn begin<T: Send + 'static>(call: Boxed<T>, slow: Handle) -> Result<T, Lost> {
    match for_a_while(call).await {
        Fast::Done(done) => Ok(done),
        Fast::TooSlow(call) => joined(slow.spawn(call)).await,
    }
}

async fn for_a_while<T>(mut call: Boxed<T>) -> Fast<T> {
    let mut interruptions = 0;
    let done = std::future::poll_fn(|context| match call.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if interruptions >= FAST_TICKS => Poll::Ready(None),
        Poll::Pending => {
            interruptions += 1;
            Poll::Pending
        }
    });
    match done.await {
        Some(done) => Fast::Done(done),
        None => Fast::TooSlow(call),
    }
}

async fn joined<T>(task: JoinHandle<T>) -> Result<T, Lost> {
    let _end = EndOnDrop(task.abort_handle());
    task.await.map_err(|_| Lost)
}
