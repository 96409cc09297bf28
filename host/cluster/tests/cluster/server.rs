//! An API server of its own for the tests that restart it, or start it otherwise than all others.

use std::{
    fs::File,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use pintle_cluster::{Cluster, ConnectOptions, Reach};
use pintle_dev::binaries::{self, Tool};

use crate::support::{eventually, plane};

const TOKEN: &str = "token-of-a-test";

/// etcd and an API server; both end with it.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    etcd: Child,
    etcd_port: u16,
    apiserver: Option<Child>,
    port: u16,
    flags: Vec<String>,
}

impl Server {
    /// Started and ready, with these flags besides the usual ones.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let users = format!("{TOKEN},tester,tester,system:masters\n");
        std::fs::write(folder.path().join("tokens.csv"), users).unwrap();
        let [etcd_port, peer, port] = free_ports();
        let etcd = etcd(folder.path(), etcd_port, peer);
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut server = Self { folder, etcd, etcd_port, apiserver: None, port, flags };
        server.resume().await;
        server
    }

    /// Kills the API server; etcd goes on.
    pub(crate) fn kill(&mut self) {
        if let Some(mut apiserver) = self.apiserver.take() {
            apiserver.kill().unwrap();
            apiserver.wait().unwrap();
        }
    }

    /// Starts the API server again, on the same port.
    pub(crate) async fn resume(&mut self) {
        self.apiserver = Some(self.spawn());
        eventually("the API server", async || {
            let client = kube::Client::try_from(self.config()).unwrap();
            let ready = http::Request::get("/readyz").body(Vec::new()).unwrap();
            client.request_text(ready).await.ok()
        })
        .await;
    }

    pub(crate) async fn connect(&self) -> Arc<Cluster> {
        let reach = Reach::Given(Box::new(self.config()));
        Cluster::connect(ConnectOptions { reach, ..ConnectOptions::default() }).await.unwrap()
    }

    pub(crate) fn config(&self) -> kube::Config {
        let mut config = kube::Config::new(format!("https://127.0.0.1:{}", self.port).parse().unwrap());
        config.accept_invalid_certs = true;
        config.connect_timeout = Some(Duration::from_secs(1));
        config.auth_info.token = Some(TOKEN.to_owned().into());
        config
    }

    fn spawn(&self) -> Child {
        // The keys of the control plane that is there anyway.
        let keys = plane().data_dir().join("pki");
        let (private, public) = (keys.join("service-account.key"), keys.join("service-account.pub"));
        let mut command = Command::new(tool(Tool::Apiserver));
        command
            .args([
                "--bind-address=127.0.0.1",
                "--endpoint-reconciler-type=none",
                "--authorization-mode=RBAC",
            ])
            .args(["--service-cluster-ip-range=10.0.0.0/16"])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port))
            .arg(format!("--secure-port={}", self.port))
            .arg(format!("--cert-dir={}", self.folder.path().display()))
            .arg(format!("--service-account-key-file={}", public.display()))
            .arg(format!("--service-account-signing-key-file={}", private.display()))
            .arg(format!("--token-auth-file={}", self.folder.path().join("tokens.csv").display()))
            .args(&self.flags);
        run(command, &self.folder.path().join("apiserver.log"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = self.etcd.kill();
        let _ = self.etcd.wait();
    }
}

fn etcd(folder: &Path, port: u16, peer: u16) -> Child {
    let (clients, peers) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
    let mut command = Command::new(tool(Tool::Etcd));
    command
        .arg(format!("--data-dir={}", folder.join("etcd").display()))
        .args(["--unsafe-no-fsync", &format!("--listen-client-urls={clients}")])
        .arg(format!("--advertise-client-urls={clients}"))
        .args([format!("--listen-peer-urls={peers}"), format!("--initial-advertise-peer-urls={peers}")])
        .arg(format!("--initial-cluster=default={peers}"));
    run(command, &folder.join("etcd.log"))
}

fn run(mut command: Command, log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap()
}

fn tool(tool: Tool) -> PathBuf {
    binaries::ensure(&mut |line| eprintln!("{line}")).unwrap().path(tool).clone()
}

/// Held together, so that no two are the same.
fn free_ports() -> [u16; 3] {
    let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
