//! Renders take a thread of their own for as long as they run, and an end when nobody waits for them any more.

use std::{future::Future, time::Duration};

use pintle_template::Cancel;
use tokio::task::AbortHandle;

/// Longest time for all that one look at a release renders. A file at its limit of steps takes about a fifth of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What `render` gives. The other tasks of the runtime go on meanwhile; after `patience`, or as soon as `given_up`
/// is done, the handle it gets is cancelled.
pub(crate) fn run<T>(
    patience: Duration,
    given_up: impl Future<Output = ()> + Send + 'static,
    render: impl FnOnce(&Cancel) -> T,
) -> T {
    let cancel = Cancel::new();
    let handle = cancel.clone();
    let watcher = tokio::spawn(async move {
        // Either way nobody waits for it any longer.
        let _ = tokio::time::timeout(patience, given_up).await;
        handle.cancel();
    });
    let _watcher = AbortOnDrop(watcher.abort_handle());
    tokio::task::block_in_place(|| render(&cancel))
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use std::{sync::Arc, time::Instant};

    use pintle_chart::{
        Capabilities, Chart, Compiled, File, Files, Order, Release, RenderError, RenderInput,
    };
    use pintle_template::{ErrorKind, Limits, NoCluster, Run};

    use super::*;

    /// A chart that loops until somebody stops it: its steps are as good as without limit.
    fn loops() -> Compiled {
        let text = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}";
        let files = [("Chart.yaml", "name: c\nversion: 0.1.0\n"), ("templates/a.yaml", text)];
        let files = files.iter().map(|(path, text)| File::new(*path, text.as_bytes())).collect();
        Compiled::new(Arc::new(Chart::from_folder(files).unwrap())).unwrap()
    }

    fn render(chart: &Compiled, cancel: &Cancel) -> RenderError {
        let release =
            Release { name: "r".to_owned(), namespace: "n".to_owned(), revision: 1, is_upgrade: false };
        let limits = Limits { steps: u64::MAX, ..Limits::default() };
        let input = RenderInput {
            release: &release,
            values: &pintle_chart::Values::new(),
            capabilities: &Capabilities::default(),
            files: Files::All,
            order: Order::Install,
            run: Run { cancel: Some(cancel.flag()), limits, ..Run::new(&NoCluster) },
        };
        chart.render(&input).unwrap_err()
    }

    fn is_cancelled(error: &RenderError) -> bool {
        matches!(error, RenderError::Template(error) if error.kind() == ErrorKind::Cancelled)
    }

    /// One worker thread: what runs on it would hold everything else.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_chart_that_loops_delays_nobody_and_ends_when_its_time_is_up() {
        let pass = tokio::spawn(async {
            let chart = loops();
            let begun = Instant::now();
            let error =
                run(Duration::from_millis(400), std::future::pending(), |cancel| render(&chart, cancel));
            (error, begun.elapsed())
        });
        let others = tokio::spawn(async {
            let mut longest = Duration::ZERO;
            for _ in 0..30 {
                let begun = Instant::now();
                tokio::time::sleep(Duration::from_millis(5)).await;
                longest = longest.max(begun.elapsed());
            }
            longest
        });
        let longest = others.await.unwrap();
        assert!(!pass.is_finished(), "the chart ended by itself, and nothing was shown");
        assert!(longest < Duration::from_millis(250), "another task waited {longest:?}");
        let (error, took) = pass.await.unwrap();
        assert!(is_cancelled(&error), "{error}");
        assert!(took >= Duration::from_millis(400), "{took:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_render_ends_when_the_lead_is_lost() {
        let (lose, lost) = tokio::sync::oneshot::channel::<()>();
        let pass = tokio::spawn(async {
            let chart = loops();
            let given_up = async { drop(lost.await) };
            run(Duration::from_secs(3_600), given_up, |cancel| render(&chart, cancel))
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!pass.is_finished());
        lose.send(()).unwrap();
        assert!(is_cancelled(&pass.await.unwrap()));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_is_ready_in_time_is_given() {
        let text = run(Duration::from_secs(60), std::future::pending(), |cancel| cancel.is_cancelled());
        assert!(!text);
    }
}
