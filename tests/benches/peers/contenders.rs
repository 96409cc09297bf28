//! The operators that are compared: how each is started, what it is given, and when it is done.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use pintle::scenario;
use pintle_dev::ControlPlane;
use serde_json::{Value, json};

use crate::{
    modules::{HELM_CONTROLLER, HELM_OPERATOR, SOURCE_CONTROLLER},
    served::Served,
    workload::{self, NAMESPACE, WORKERS},
};

const CRD: &str = include_str!("crd.yaml");
const WATCH: &str = include_str!("watch.yaml");

/// One of the operators, in one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Ours,
    Flux,
    /// As its documentation has it, which by its inverted flag watches nothing that it made.
    Hybrid,
    /// With the flag set to what turns the watches on.
    HybridWatching,
}

/// What an operator needs while it runs.
pub(crate) struct Prepared {
    pub arguments: Vec<String>,
    /// Kept for as long as the operator runs.
    #[expect(dead_code, reason = "it serves until it is dropped")]
    served: Option<Served>,
}

// === impl Who ===

impl Who {
    pub(crate) const ALL: [Self; 4] = [Self::Ours, Self::Flux, Self::Hybrid, Self::HybridWatching];

    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Flux => "flux",
            Self::Hybrid => "hybrid",
            Self::HybridWatching => "hybrid-watching",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Ours => "Pintle",
            Self::Flux => "Flux helm-controller",
            Self::Hybrid => "hybrid operator",
            Self::HybridWatching => "hybrid, watches on",
        }
    }

    /// Its name to the API server: a service account's, so that it is queued as in a cluster.
    pub(crate) fn user(self) -> String {
        format!("system:serviceaccount:{NAMESPACE}:{}", self.key())
    }

    /// How long a deleted object is waited for: over a minute where the period of a minute repairs.
    pub(crate) const fn repair_patience(self) -> Duration {
        Duration::from_secs(match self {
            Self::Ours | Self::HybridWatching => 30,
            Self::Flux => 15,
            Self::Hybrid => 75,
        })
    }

    /// Its program, which is built first when it is a peer's; `ours` is the one of Pintle.
    pub(crate) fn program(self, ours: &Path) -> anyhow::Result<PathBuf> {
        match self {
            Self::Ours => Ok(ours.to_owned()),
            Self::Flux => HELM_CONTROLLER.program(),
            Self::Hybrid | Self::HybridWatching => HELM_OPERATOR.program(),
        }
    }

    /// Kinds that must be there before it starts.
    pub(crate) fn definitions(self) -> anyhow::Result<Vec<Value>> {
        let bench: Value = serde_yaml::from_str(CRD)?;
        Ok(match self {
            Self::Ours => {
                let own = pintle_api::crd::all().into_iter().map(serde_json::to_value);
                own.chain([Ok(bench)]).collect::<Result<_, _>>()?
            }
            Self::Flux => [HELM_CONTROLLER.definitions()?, SOURCE_CONTROLLER.definitions()?].concat(),
            Self::Hybrid | Self::HybridWatching => vec![bench],
        })
    }

    /// Gives it the chart; `folder` is of this run alone.
    pub(crate) async fn prepare(self, plane: &ControlPlane, folder: &Path) -> anyhow::Result<Prepared> {
        let client = plane.client()?;
        let (arguments, served) = match self {
            Self::Ours => (prepare_ours(&client).await?, None),
            Self::Flux => {
                let served = prepare_flux(&client).await?;
                (flux_arguments(), Some(served))
            }
            Self::Hybrid | Self::HybridWatching => (prepare_hybrid(self, folder)?, None),
        };
        Ok(Prepared { arguments, served })
    }

    /// Access to its owners: the objects that become releases.
    pub(crate) fn owners(self, client: Client) -> Api<DynamicObject> {
        let resource = match self {
            Self::Flux => resource("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases"),
            _ => resource("bench.pintle.dev", "v1", "BenchApp", "benchapps"),
        };
        Api::namespaced_with(client, NAMESPACE, &resource)
    }

    /// One owner.
    pub(crate) fn owner(self, number: usize) -> anyhow::Result<DynamicObject> {
        let metadata = json!({"name": workload::name(number), "namespace": NAMESPACE});
        let values = workload::values(number);
        Ok(serde_json::from_value(match self {
            Self::Flux => json!({
                "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata,
                "spec": {
                    "interval": "10m", "releaseName": workload::name(number), "values": values,
                    "chartRef": {"kind": "HelmChart", "name": "bench"}
                },
            }),
            _ => json!({
                "apiVersion": "bench.pintle.dev/v1", "kind": "BenchApp", "metadata": metadata, "spec": values
            }),
        })?)
    }

    /// Whether it says that an owner's release is there.
    pub(crate) fn is_ready(self, owner: &DynamicObject) -> bool {
        let conditions = owner.data["status"]["conditions"].as_array();
        let is = |kind: &str, status: &str| {
            let mut all = conditions.into_iter().flatten();
            all.any(|condition| condition["type"] == kind && condition["status"] == status)
        };
        match self {
            Self::Ours | Self::Flux => {
                let seen = owner.data["status"]["observedGeneration"].as_i64();
                is("Ready", "True") && seen == owner.metadata.generation
            }
            Self::Hybrid | Self::HybridWatching => is("Deployed", "True") && is("ReleaseFailed", "False"),
        }
    }
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

async fn prepare_ours(client: &Client) -> anyhow::Result<Vec<String>> {
    scenario::install_chart(client, &workload::chart(), NAMESPACE, "chart").await?;
    scenario::apply(client, serde_yaml::from_str(WATCH)?).await?;
    let workers = format!("--max-concurrent-reconciles={WORKERS}");
    let fixed = ["operator", "--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let namespace = format!("--leader-election-namespace={NAMESPACE}");
    Ok(fixed.into_iter().map(str::to_owned).chain([workers, namespace]).collect())
}

fn prepare_hybrid(who: Who, folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut watch =
        json!({"group": "bench.pintle.dev", "version": "v1", "kind": "BenchApp", "chart": workload::chart()});
    if who == Who::HybridWatching {
        watch["watchDependentResources"] = json!(false);
    }
    let path = folder.join("watches.yaml");
    std::fs::write(&path, serde_yaml::to_string(&[watch])?)?;
    let fixed = ["run", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"];
    let workers = format!("--max-concurrent-reconciles={WORKERS}");
    let watches = format!("--watches-file={}", path.display());
    Ok(fixed.into_iter().map(str::to_owned).chain([workers, watches]).collect())
}

fn flux_arguments() -> Vec<String> {
    let fixed = ["--watch-all-namespaces", "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0"];
    fixed.into_iter().map(str::to_owned).chain([format!("--concurrent={WORKERS}")]).collect()
}

/// One HelmChart for all releases, with an artifact as source-controller would note it: the cheapest form for Flux.
async fn prepare_flux(client: &Client) -> anyhow::Result<Served> {
    let packed = workload::archive()?;
    let served = Served::start(&packed.file_name, packed.bytes.clone()).await?;
    let chart = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "spec": {
            "chart": "bench", "version": "1.0.0", "interval": "10m",
            "sourceRef": {"kind": "HelmRepository", "name": "bench"}
        },
    });
    scenario::apply(client, chart).await?;
    let now = Timestamp::now();
    let status = json!({"status": {
        "observedGeneration": 1, "url": served.url,
        "artifact": {
            "url": served.url, "path": packed.file_name, "digest": packed.digest,
            "revision": "1.0.0", "size": packed.bytes.len(), "lastUpdateTime": now,
        },
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "ChartPullSucceeded", "message": "put here by the bench",
            "lastTransitionTime": now, "observedGeneration": 1,
        }],
    }});
    let kind = resource("source.toolkit.fluxcd.io", "v1", "HelmChart", "helmcharts");
    let charts: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &kind);
    charts.patch_status("bench", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(served)
}
