//! The clock that interrupts guests. It has a thread of its own, and rests when no call runs.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use wasmtime::EngineWeak;

use crate::limits::TICK;

/// Ticks without a call after which the clock rests. A burst of calls wakes it once, not each time.
const LINGER: u32 = 5;

/// Counts the epochs of an engine while a call runs.
pub(crate) struct Ticker(Arc<Shared>);

/// Keeps the clock running until it is dropped.
pub(crate) struct Ticking<'a>(&'a Shared);

struct Shared {
    calls: AtomicUsize,
    resting: AtomicBool,
    stopped: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Ticker {
    /// Starts the thread, at rest.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn new(engine: &wasmtime::Engine) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            calls: AtomicUsize::new(0),
            resting: AtomicBool::new(true),
            stopped: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        });
        let (theirs, engine) = (Arc::clone(&shared), engine.weak());
        thread::Builder::new().name("plugin-ticker".into()).spawn(move || theirs.run(&engine))?;
        Ok(Self(shared))
    }

    /// The clock runs from now on until what is returned is dropped.
    pub(crate) fn start(&self) -> Ticking<'_> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        if self.0.resting.load(Ordering::SeqCst) {
            self.0.wake();
        }
        Ticking(&self.0)
    }

    /// True while the clock runs.
    pub(crate) fn is_running(&self) -> bool {
        !self.0.resting.load(Ordering::SeqCst)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.wake();
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

// === impl Shared ===

impl Shared {
    fn run(&self, engine: &EngineWeak) {
        while self.rest() {
            let mut idle = 0;
            while idle < LINGER {
                thread::sleep(TICK);
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
                idle = if self.calls.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
            }
        }
    }

    /// Waits for a call; false when the engine is gone.
    fn rest(&self) -> bool {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.resting.store(true, Ordering::SeqCst);
        while self.calls.load(Ordering::SeqCst) == 0 && !self.stopped.load(Ordering::SeqCst) {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.resting.store(false, Ordering::SeqCst);
        !self.stopped.load(Ordering::SeqCst)
    }

    fn wake(&self) {
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.wake.notify_one();
    }
}
