//! What the demo has to show at its end.

use std::{collections::BTreeMap, net::SocketAddr};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt as _,
    api::ListParams,
    core::DynamicObject,
    discovery::{Discovery, verbs},
};
use pintle_api::{
    Plugin, SpecialResource, names,
    status::{Condition, StateStatus},
};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Phases, screen::Screen};

/// What the demo has to show at its end.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    ready: bool,
    states: Vec<StateStatus>,
    objects: Vec<String>,
    node_labels: BTreeMap<String, Vec<String>>,
    conditions: Vec<Condition>,
    plugin: PluginSummary,
    seconds: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Serialize)]
struct PluginSummary {
    digest: String,
    /// Absent where nobody serves metrics.
    calls: Option<u64>,
}

// === impl Summary ===

impl Summary {
    pub(super) async fn collect(
        client: &Client,
        metrics: Option<SocketAddr>,
        phases: Phases,
        ready: bool,
    ) -> anyhow::Result<Self> {
        let resources: Api<SpecialResource> = Api::all(client.clone());
        let owner = resources.get("simple-kmod").await.context("could not read the SpecialResource")?;
        let plugins: Api<Plugin> = Api::all(client.clone());
        let plugin = plugins.get("driver-loaded").await.context("could not read the Plugin")?;
        let status = owner.status.clone().unwrap_or_default();
        Ok(Self {
            ready,
            objects: objects(client, &owner.uid().unwrap_or_default()).await?,
            node_labels: node_labels(client).await?,
            states: status.states,
            conditions: status.conditions,
            plugin: PluginSummary {
                digest: plugin.status.map(|status| status.digest).unwrap_or_default(),
                calls: calls(metrics).await,
            },
            seconds: phases
                .into_iter()
                .map(|(name, seconds)| (name, (seconds * 1000.0).round() / 1000.0))
                .collect(),
        })
    }

    /// The same for people.
    pub(super) fn draw(&self, screen: &Screen) {
        screen.finish();
        for object in &self.objects {
            screen.say(&format!("  {object}"));
        }
        screen.say(&format!("  {}", self.plugin.told()));
        let parts: Vec<_> = self
            .seconds
            .iter()
            .filter(|(name, _)| self.ready || **name != "ready")
            .map(|(name, seconds)| format!("{name} {seconds:.1} s"))
            .collect();
        let word = if self.ready { "ready" } else { "NOT ready in time" };
        screen.say(&format!("SpecialResource simple-kmod is {word} ({})", parts.join(", ")));
    }
}

// === impl PluginSummary ===

impl PluginSummary {
    fn told(&self) -> String {
        let known = if self.digest.is_empty() { "is not pulled yet" } else { self.digest.as_str() };
        match self.calls {
            None => format!("plugin driver-loaded {known}"),
            Some(0) => format!("plugin driver-loaded {known}: not called yet"),
            Some(1) => format!("plugin driver-loaded {known}: called once"),
            Some(calls) => format!("plugin driver-loaded {known}: called {calls} times"),
        }
    }
}

/// Everything in the cluster that carries the owner's mark.
async fn objects(client: &Client, owner: &str) -> anyhow::Result<Vec<String>> {
    let served =
        Discovery::new(client.clone()).run().await.context("could not ask which kinds are served")?;
    let params = ListParams::default().labels(&format!("{}={owner}", names::OWNER));
    let mut found = Vec::new();
    for (resource, capabilities) in served.groups().flat_map(kube::discovery::ApiGroup::recommended_resources)
    {
        if !capabilities.supports_operation(verbs::LIST) {
            continue;
        }
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let Ok(list) = api.list(&params).await else { continue };
        found.extend(list.items.iter().map(|object| match object.namespace() {
            Some(namespace) => format!("{} {namespace}/{}", resource.kind, object.name_any()),
            None => format!("{} {}", resource.kind, object.name_any()),
        }));
    }
    found.sort();
    Ok(found)
}

async fn node_labels(client: &Client) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let list = nodes.list(&ListParams::default()).await.context("could not list the nodes")?;
    let states = |node: &Node| {
        let labels = node.labels().iter().filter(|(key, _)| key.starts_with(names::SRO_NODE_STATE));
        labels.map(|(key, value)| format!("{key}={value}")).collect()
    };
    Ok(list.items.iter().map(|node| (node.name_any(), states(node))).collect())
}

/// Calls of plugins so far, from the operator's metrics, where they are served.
async fn calls(metrics: Option<SocketAddr>) -> Option<u64> {
    let text = scrape(metrics?).await.ok()?;
    let lines = text.lines().filter(|line| line.starts_with("pintle_plugin_calls_total"));
    Some(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}

async fn scrape(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_was_not_called_is_not_counted() {
        let told = |digest: &str, calls| PluginSummary { digest: digest.to_owned(), calls }.told();
        assert_eq!(told("", None), "plugin driver-loaded is not pulled yet");
        assert_eq!(told("sha256:0", Some(0)), "plugin driver-loaded sha256:0: not called yet");
        assert_eq!(told("sha256:0", Some(1)), "plugin driver-loaded sha256:0: called once");
        assert_eq!(told("sha256:0", Some(7)), "plugin driver-loaded sha256:0: called 7 times");
    }
}
