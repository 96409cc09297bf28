//! The threads that run guests: a few fast ones, and one for calls that take long.
//!
//! A call that was interrupted [`FAST_TICKS`] times goes on in the slow lane. So guests that spin
//! share one thread among themselves, and those that end soon never wait behind them.
//!
//! To wake a thread and to be woken by it takes as long as a small call. So a call of a plugin that was quick so far
//! begins on the thread that asks, and goes to the lanes at its first interruption, after [`crate::limits::TICK`] at
//! the most. Fewer such calls run at once than there are cores: one is always left to watches and the lease.

use std::{
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::{AbortHandle, JoinHandle},
    time::Timeout,
};

use crate::limits::FAST_TICKS;

/// Threads for [`Lanes::compute`] at the most, and how long one is kept without work: a start has many plugins at once.
const LOADERS: usize = 4;
const LOADER_LINGERS: Duration = Duration::from_millis(500);

/// A call that has not ended.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The threads that run guests.
pub(crate) struct Lanes {
    fast: Option<Runtime>,
    slow: Option<Runtime>,
    /// Calls that may still begin where they are asked for.
    places: AtomicUsize,
}

/// The right to run on the thread that asks.
struct Place<'a>(&'a AtomicUsize);

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
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let lane = |name: &str, workers: usize| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers).thread_name(name);
            builder.max_blocking_threads(cores.min(LOADERS)).thread_keep_alive(LOADER_LINGERS);
            builder.event_interval(1).global_queue_interval(1).enable_time().build()
        };
        Ok(Self {
            fast: Some(lane("plugin", workers)?),
            slow: Some(lane("plugin-slow", 1)?),
            places: AtomicUsize::new(cores.saturating_sub(1).max(1)),
        })
    }

    /// Runs a call to its end; one that will be quick begins on this thread, where there is a place for it. Dropping
    /// the returned future ends the call. A call comes in its box: it has kilobytes, which are moved once then.
    pub(crate) async fn run<T: Send + 'static>(&self, mut call: Boxed<T>, is_quick: bool) -> Result<T, Lost> {
        let (Some(fast), Some(slow)) = (&self.fast, &self.slow) else { return Err(Lost) };
        if let Some(place) = is_quick.then(|| self.place()).flatten() {
            if let Some(done) = until_interrupted(&mut call).await? {
                return Ok(done);
            }
            drop(place);
        }
        joined(fast.spawn(begin(call, slow.handle().clone()))).await?
    }

    /// Runs what computes without a pause and is no guest, on threads for nothing else.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Lost> {
        joined(self.fast.as_ref().ok_or(Lost)?.spawn_blocking(work)).await
    }

    /// Limits the time of a call, wherever it will run: the clock is that of the lanes.
    ///
    /// # Errors
    /// When the threads are gone.
    pub(crate) fn limited<F: Future>(&self, end: Instant, call: F) -> Result<Timeout<F>, Lost> {
        let _within = self.fast.as_ref().ok_or(Lost)?.enter();
        Ok(tokio::time::timeout_at(end.into(), call))
    }

    fn place(&self) -> Option<Place<'_>> {
        let taken = self.places.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.is_ok().then_some(Place(&self.places))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
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

/// What a call gives if it ends before it is interrupted. A panic stays within the call, as it does in a task.
async fn until_interrupted<T>(call: &mut Boxed<T>) -> Result<Option<T>, Lost> {
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)));
        Poll::Ready(match polled {
            Ok(Poll::Ready(done)) => Ok(Some(done)),
            Ok(Poll::Pending) => Ok(None),
            Err(_) => Err(Lost),
        })
    })
    .await
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
