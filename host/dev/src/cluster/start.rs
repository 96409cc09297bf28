//! The start of a control plane: what can start at once does, what needs another waits for just that.

use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::Value;

use super::access::{self, Credential, Endpoint, User};
use super::components::{Layout, Plan};
use super::pki::{self, Pki};
use super::ports::Reserved;
use super::process::{Daemon, Group};
use super::{ADMIN, ControlPlane, Error, Options, Phases, Ports, SIMULATOR};
use crate::{openshift, stages};

/// A cold machine that also compiles takes up to 20 s; past this something is wrong.
const PATIENCE: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(20);

const LOGS_DEFINITION: &str = include_str!("../../crds/logs.yaml");

const CONTROLLER_MANAGER: &str = "pintle:controller-manager";
const SCHEDULER: &str = "pintle:scheduler";
const KWOK: &str = "pintle:kwok";

pub(super) async fn run(options: Options) -> Result<ControlPlane, Error> {
    let begun = Instant::now();
    if options.detach && options.data_dir.is_none() {
        return Err(Error::DetachedWithoutFolder);
    }
    let mut plane = prepare(&options)?;
    let pki = Pki::ensure(plane.layout.pki()).map_err(Error::io("make keys and certificates"))?;
    let mut starter = Starter { options: &options, pki, begun };
    starter.store_and_server(&mut plane).await?;
    starter.the_rest(&mut plane).await?;
    plane.simulate()?;
    plane.phases.all = begun.elapsed();
    Ok(plane)
}

/// Starts a control plane on a thread and runtime that stay.
pub(super) fn on_own_runtime(options: fn() -> Options) -> Result<ControlPlane, Error> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(send.send(Err(Error::io("start a runtime")(error)))),
        };
        drop(send.send(runtime.block_on(run(options()))));
        runtime.block_on(std::future::pending::<()>());
    });
    receive.recv().unwrap_or_else(|_| {
        Err(Error::Io {
            action: "start a control plane on its thread",
            source: std::io::Error::other("the thread ended"),
        })
    })
}

/// Everything that needs no running program: folder, ports, tokens.
fn prepare(options: &Options) -> Result<ControlPlane, Error> {
    let (root, scratch) = data_folder(options)?;
    let layout = Layout::new(root).map_err(Error::io("make the data folder"))?;
    let reserved = Reserved::<5>::new().map_err(Error::io("find free ports"))?;
    let credentials = credentials(options).map_err(Error::io("make tokens"))?;
    pki::write_secret(&layout.tokens(), &access::token_file(&credentials))
        .map_err(Error::io("write the token file"))?;
    stages::write(
        &layout.stages(),
        &options.timings,
        &options.gated_images,
        &layout.pod_logs().join("empty.log"),
    )
    .map_err(Error::io("write the stages of the simulated kubelets"))?;
    let group = if options.detach {
        Ok(Group::detached())
    } else {
        Group::tied(scratch.as_ref().map(|dir| dir.path()))
    };
    let group = group.map_err(Error::io("start the process that ends the control plane with this one"))?;
    let [etcd, etcd_peer, apiserver, kubelet, registry] =
        reserved.release().map_err(Error::io("find free ports"))?;
    Ok(ControlPlane {
        endpoint: Endpoint { port: apiserver, authority: layout.pki().join("ca.crt") },
        ports: Ports { etcd, etcd_peer, apiserver, kubelet, registry },
        with_registry: options.registry.is_some(),
        credentials,
        timings: options.timings.clone(),
        gated_images: options.gated_images.clone(),
        openshift: options.openshift.clone(),
        phases: Phases::default(),
        simulators: None,
        daemons: Mutex::default(),
        group: Some(group),
        layout,
        scratch,
    })
}

fn data_folder(options: &Options) -> Result<(PathBuf, Option<tempfile::TempDir>), Error> {
    if let Some(folder) = &options.data_dir {
        std::fs::create_dir_all(folder).map_err(Error::io("make the data folder"))?;
        let folder = folder.canonicalize().map_err(Error::io("find the data folder"))?;
        return Ok((folder, None));
    }
    let scratch = tempfile::Builder::new().prefix("pintle-dev-").tempdir();
    let scratch = scratch.map_err(Error::io("make a temporary folder"))?;
    Ok((scratch.path().to_path_buf(), Some(scratch)))
}

fn credentials(options: &Options) -> std::io::Result<Vec<Credential>> {
    let own = [ADMIN, SIMULATOR, CONTROLLER_MANAGER, SCHEDULER, KWOK].map(User::admin);
    own.into_iter().chain(options.users.iter().cloned()).map(Credential::new).collect()
}

struct Starter<'a> {
    options: &'a Options,
    pki: Pki,
    begun: Instant,
}

impl Starter<'_> {
    async fn store_and_server(&mut self, plane: &mut ControlPlane) -> Result<(), Error> {
        for credential in &plane.credentials {
            let path = plane.layout.kubeconfig(&credential.user.name);
            plane
                .endpoint
                .write_kubeconfig(&path, credential)
                .map_err(Error::io("write a kubeconfig file"))?;
        }
        let commands = Plan {
            binaries: &self.options.binaries,
            layout: &plane.layout.clone(),
            pki: &self.pki,
            ports: &plane.ports.clone(),
        };
        spawn(plane, "etcd", &mut commands.etcd())?;
        if let Some(storage) = &self.options.registry {
            let mut registry = commands.registry(storage).map_err(Error::io("configure the registry"))?;
            spawn(plane, "registry", &mut registry)?;
        }
        let etcd = plane.ports.etcd;
        until(plane, "etcd", async || listens(etcd)).await?;
        plane.phases.etcd = self.begun.elapsed();
        spawn(plane, "kube-apiserver", &mut commands.apiserver())
    }

    async fn the_rest(&mut self, plane: &mut ControlPlane) -> Result<(), Error> {
        let client = plane.client()?;
        let port = plane.ports.apiserver;
        until(plane, "kube-apiserver", async || listens(port) && answers(&client, "/readyz").await).await?;
        plane.phases.apiserver = self.begun.elapsed();
        self.spawn_controllers(plane)?;
        let openshift = &self.options.openshift;
        define(&client, openshift, &self.options.definitions).await?;
        until(plane, "the kinds of OpenShift", async || {
            openshift::install_objects(&client, openshift).await.is_ok()
        })
        .await?;
        let Ports { kubelet, registry, .. } = plane.ports;
        let with_registry = plane.with_registry;
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "default");
        let controllers_work = async || matches!(accounts.get_opt("default").await, Ok(Some(_)));
        until(plane, "kube-controller-manager", controllers_work).await?;
        until(plane, "kwok", async || listens(kubelet)).await?;
        until(plane, "registry", async || !with_registry || listens(registry)).await
    }

    fn spawn_controllers(&self, plane: &mut ControlPlane) -> Result<(), Error> {
        let layout = plane.layout.clone();
        let ports = plane.ports;
        let commands =
            Plan { binaries: &self.options.binaries, layout: &layout, pki: &self.pki, ports: &ports };
        let kubeconfig = |user: &str| layout.kubeconfig(user);
        spawn(
            plane,
            "kube-controller-manager",
            &mut commands.controller_manager(&kubeconfig(CONTROLLER_MANAGER)),
        )?;
        spawn(plane, "kwok", &mut commands.kwok(&kubeconfig(KWOK)))?;
        spawn(plane, "kube-scheduler", &mut commands.scheduler(&kubeconfig(SCHEDULER)))
    }
}

fn spawn(
    plane: &mut ControlPlane,
    name: &'static str,
    command: &mut std::process::Command,
) -> Result<(), Error> {
    let log = plane.layout.log_of(name);
    let Some(group) = plane.group.as_mut() else {
        return Ok(());
    };
    let daemon =
        group.spawn(name, log, command).map_err(Error::io("start a program of the control plane"))?;
    plane.daemons.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).push(daemon);
    Ok(())
}

/// Returns when `ready` does; an ended program or [`PATIENCE`] ends the wait.
async fn until(
    plane: &mut ControlPlane,
    what: &'static str,
    ready: impl AsyncFn() -> bool,
) -> Result<(), Error> {
    let begun = Instant::now();
    while !ready().await {
        plane.check()?;
        if begun.elapsed() > PATIENCE {
            return Err(Error::Late { what, after: PATIENCE });
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

pub(super) fn check(daemons: &mut [Daemon]) -> Result<(), Error> {
    for daemon in daemons {
        if let Some(status) = daemon.ended() {
            return Err(Error::Ended {
                name: daemon.name().to_owned(),
                status: status.to_string(),
                log: daemon.log().to_path_buf(),
                tail: daemon.tail(),
            });
        }
    }
    Ok(())
}

fn listens(port: u16) -> bool {
    TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), POLL).is_ok()
}

async fn answers(client: &Client, path: &str) -> bool {
    match http::Request::get(path).body(Vec::new()) {
        Ok(request) => client.request_text(request).await.is_ok(),
        Err(_) => false,
    }
}

/// Installs kinds; the kubelets' own comes with them.
async fn define(client: &Client, openshift: &[openshift::Kind], definitions: &[Value]) -> Result<(), Error> {
    let own: Value = serde_yaml::from_str(LOGS_DEFINITION)
        .map_err(std::io::Error::other)
        .map_err(Error::io("read the kind of pod logs"))?;
    let kinds = Api::<CustomResourceDefinition>::all(client.clone());
    let openshift: Vec<Value> = openshift.iter().map(|kind| kind.definition()).collect();
    for definition in std::iter::once(&own).chain(&openshift).chain(definitions) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let how = PatchParams::apply("pintle-dev").force();
        kinds.patch(name, &how, &Patch::Apply(definition)).await.map_err(Error::api("install a kind"))?;
    }
    Ok(())
}
