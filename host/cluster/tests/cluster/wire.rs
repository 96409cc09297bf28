//! A wire between a client and the API server that can be cut.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Passes bytes on while it is whole. Ends with the test's runtime.
pub(crate) struct Wire {
    port: u16,
    whole: Arc<AtomicBool>,
    cuts: watch::Sender<u64>,
}

impl Wire {
    /// To `target`, `127.0.0.1:6443`.
    pub(crate) async fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let whole = Arc::new(AtomicBool::new(true));
        let (cuts, cut) = watch::channel(0);
        tokio::spawn(accept(listener, target, Arc::clone(&whole), cut));
        Self { port, whole, cuts }
    }

    /// To the server of a configuration, and the configuration that goes over it.
    pub(crate) async fn before(mut config: kube::Config) -> (Self, kube::Config) {
        let wire = Self::to(config.cluster_url.authority().unwrap().to_string()).await;
        config.cluster_url = format!("https://127.0.0.1:{}", wire.port).parse().unwrap();
        (wire, config)
    }

    /// Ends every connection and refuses new ones.
    pub(crate) fn cut(&self) {
        self.whole.store(false, Ordering::SeqCst);
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Ends every connection; new ones are taken.
    pub(crate) fn jolt(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub(crate) fn mend(&self) {
        self.whole.store(true, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, target: String, whole: Arc<AtomicBool>, cut: watch::Receiver<u64>) {
    while let Ok((mut near, _)) = listener.accept().await {
        if !whole.load(Ordering::SeqCst) {
            continue;
        }
        let (target, mut cut) = (target.clone(), cut.clone());
        tokio::spawn(async move {
            cut.mark_unchanged();
            let Ok(mut far) = TcpStream::connect(&target).await else { return };
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                _ = cut.changed() => {}
            }
        });
    }
}
