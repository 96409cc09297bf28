//! The command line of each program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::pki::Pki;
use super::{Ports, RegistryStorage};
use crate::binaries::{Binaries, Tool};

/// What is logged about requests: everything that is not the control plane talking to itself.
const AUDIT_POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: ["system:apiserver", "pintle:controller-manager", "pintle:scheduler", "pintle:kwok", "pintle:simulator"]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/metrics*"]
- level: Metadata
"#;

/// The folder of one control plane.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: PathBuf) -> io::Result<Self> {
        let layout = Self { root };
        for folder in [layout.logs(), layout.pod_logs()] {
            fs::create_dir_all(folder)?;
        }
        fs::write(layout.audit_policy(), AUDIT_POLICY)?;
        Ok(layout)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub(crate) fn pod_logs(&self) -> PathBuf {
        self.root.join("pods")
    }

    pub(crate) fn pki(&self) -> PathBuf {
        self.root.join("pki")
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.root.join("tokens.csv")
    }

    pub(crate) fn audit_policy(&self) -> PathBuf {
        self.root.join("audit-policy.yaml")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    pub(crate) fn stages(&self) -> PathBuf {
        self.root.join("stages.yaml")
    }

    pub(crate) fn log_of(&self, name: &str) -> PathBuf {
        self.logs().join(format!("{name}.log"))
    }

    /// The kubeconfig file of a user; characters that mean something in a path are replaced.
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.root.join(format!("kubeconfig-{}", user.replace([':', '/'], "-")))
    }
}

/// What every command line is made from.
pub(crate) struct Plan<'a> {
    pub(crate) binaries: &'a Binaries,
    pub(crate) layout: &'a Layout,
    pub(crate) pki: &'a Pki,
    pub(crate) ports: &'a Ports,
}

impl Plan<'_> {
    fn command(&self, tool: Tool) -> Command {
        let mut command = Command::new(self.binaries.path(tool));
        command.current_dir(self.layout.root());
        command
    }

    pub(crate) fn etcd(&self) -> Command {
        let Ports { etcd, etcd_peer, .. } = *self.ports;
        let (client, peer) = (format!("http://127.0.0.1:{etcd}"), format!("http://127.0.0.1:{etcd_peer}"));
        let mut command = self.command(Tool::Etcd);
        command
            .args(["--name=pintle", "--unsafe-no-fsync", "--logger=zap", "--log-level=warn"])
            .args(["--snapshot-count=10000", "--quota-backend-bytes=4294967296"])
            // One member needs no rounds of election: these make it lead 100 ms after its start.
            .args(["--heartbeat-interval=10", "--election-timeout=100"])
            .arg(flag("data-dir", self.layout.root().join("etcd").display()))
            .arg(flag("listen-client-urls", &client))
            .arg(flag("advertise-client-urls", &client))
            .arg(flag("listen-peer-urls", &peer))
            .arg(flag("initial-advertise-peer-urls", &peer))
            .arg(format!("--initial-cluster=pintle={peer}"));
        command
    }

    pub(crate) fn apiserver(&self) -> Command {
        let Ports { apiserver, etcd, .. } = *self.ports;
        let (certificate, key) = self.pki.serving();
        let signing = self.pki.service_account_key();
        let checking = self.pki.service_account_public_key();
        let mut command = self.command(Tool::Apiserver);
        command
            .args([
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                "--endpoint-reconciler-type=none",
            ])
            .args(["--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=Node,RBAC"])
            .args([
                "--allow-privileged=true",
                "--profiling=false",
                "--kubelet-preferred-address-types=InternalIP",
            ])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--etcd-servers=http://127.0.0.1:{etcd}"))
            .arg(flag("secure-port", apiserver))
            .arg(flag("cert-dir", self.layout.pki().display()))
            .arg(flag("tls-cert-file", certificate.display()))
            .arg(flag("tls-private-key-file", key.display()))
            .arg(flag("service-account-key-file", checking.display()))
            .arg(flag("service-account-signing-key-file", signing.display()))
            .arg(flag("token-auth-file", self.layout.tokens().display()))
            .arg(flag("audit-policy-file", self.layout.audit_policy().display()))
            .arg(flag("audit-log-path", self.layout.audit_log().display()));
        command
    }

    pub(crate) fn controller_manager(&self, kubeconfig: &Path) -> Command {
        let mut command = self.command(Tool::ControllerManager);
        command
            .args(["--use-service-account-credentials=true", "--leader-elect=false", "--secure-port=0"])
            .args(["--kube-api-qps=1000", "--kube-api-burst=2000", "--profiling=false"])
            .arg(flag("kubeconfig", kubeconfig.display()))
            .arg(flag("root-ca-file", self.pki.authority().display()))
            .arg(flag("service-account-private-key-file", self.pki.service_account_key().display()));
        command
    }

    pub(crate) fn scheduler(&self, kubeconfig: &Path) -> Command {
        let mut command = self.command(Tool::Scheduler);
        command
            .args(["--leader-elect=false", "--secure-port=0", "--profiling=false"])
            .args(["--kube-api-qps=1000", "--kube-api-burst=2000"])
            .arg(flag("kubeconfig", kubeconfig.display()));
        command
    }

    pub(crate) fn kwok(&self, kubeconfig: &Path) -> Command {
        let port = self.ports.kubelet;
        let (certificate, key) = self.pki.serving();
        let mut command = self.command(Tool::Kwok);
        command
            .args(["--manage-all-nodes=true", "--node-ip=127.0.0.1", "--node-lease-duration-seconds=40"])
            .args(["--enable-crds=Logs", "--cidr=10.200.0.0/16"])
            .arg(flag("kubeconfig", kubeconfig.display()))
            .arg(flag("config", self.layout.stages().display()))
            .arg(flag("node-port", port))
            .arg(format!("--server-address=127.0.0.1:{port}"))
            .arg(flag("tls-cert-file", certificate.display()))
            .arg(flag("tls-private-key-file", key.display()));
        command
    }

    /// The registry's command, whose configuration file is written here.
    pub(crate) fn registry(&self, storage: &RegistryStorage) -> io::Result<Command> {
        let storage = match storage {
            RegistryStorage::Memory => {
                serde_json::json!({"inmemory": {}, "delete": {"enabled": true}})
            }
            RegistryStorage::Folder(folder) => {
                serde_json::json!({"filesystem": {"rootdirectory": folder}, "delete": {"enabled": true}})
            }
        };
        let document = serde_json::json!({
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": true}},
            "storage": storage,
            "http": {"addr": format!("127.0.0.1:{}", self.ports.registry)},
        });
        let path = self.layout.root().join("registry.yaml");
        fs::write(&path, serde_yaml::to_string(&document).map_err(io::Error::other)?)?;
        let mut command = self.command(Tool::Registry);
        // Without this it looks for a collector of traces on loopback for as long as it runs.
        command.env("OTEL_TRACES_EXPORTER", "none").arg("serve").arg(path);
        Ok(command)
    }
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
