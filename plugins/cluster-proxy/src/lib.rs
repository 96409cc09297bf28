//! `cluster-proxy`: containers that reach out of the cluster get its proxy, and the certificates that it
//! trusts. OpenShift keeps both in one place; charts know neither.

use pintle_plugin_sdk::{
    Call, Edits, Failure, Manifest, ObjectAccess, ObjectRef, Plugin, PostRenderer, ReadAccess, Rendered,
    config::config,
    export_plugin,
    kube::{self, ReadError},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What is read of the Proxy, and must be granted.
const FIELDS: [&str; 3] = ["status.httpProxy", "status.httpsProxy", "status.noProxy"];
/// The volume that is added, and the file that the certificates are in.
const VOLUME: &str = "pintle-trusted-ca";
const FILE: &str = "tls-ca-bundle.pem";

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// Kinds whose pods get the proxy.
        kinds: Vec<String> = ["DaemonSet", "Deployment", "StatefulSet", "Job"].map(str::to_owned).to_vec(),
        /// Only containers of this name; without one, all of a pod.
        container: Option<String> = None,
        /// A ConfigMap that OpenShift fills with the trusted certificates; it is made, and mounted into
        /// the same containers. Without a name there is none.
        trusted_ca: Option<String> = None,
        /// Where in a container they are mounted.
        mount_path: String = "/etc/pki/ca-trust/extracted/pem".to_owned(),
    }
}

#[derive(Default, Deserialize)]
struct Proxy {
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    http_proxy: String,
    https_proxy: String,
    no_proxy: String,
}

/// The plugin.
pub struct ClusterProxy;

impl Plugin for ClusterProxy {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("cluster-proxy", env!("CARGO_PKG_VERSION"))
            .description(
                "Containers that reach out of the cluster get its proxy and its trusted certificates",
            )
            .config::<Config>()
            .reads(ReadAccess::to("config.openshift.io", "Proxy").fields(&FIELDS))
            .makes(ObjectAccess::to("", "ConfigMap").in_release())
    }
}

impl PostRenderer for ClusterProxy {
    fn post_render(call: &Call<Config>, objects: &[Rendered]) -> Result<Edits, Failure> {
        let proxy = ObjectRef::new("config.openshift.io/v1", "Proxy", "cluster");
        let Proxy { status } = match kube::get(&proxy, &FIELDS) {
            // A cluster without the kind has no proxy of its own; one that appears calls again.
            Err(ReadError::NotFound | ReadError::KindUnknown) => Proxy::default(),
            found => found?,
        };
        let variables = variables(&status);
        if variables.is_empty() {
            return Ok(Edits::none());
        }
        let (mut edits, mut states) = (Edits::none(), Vec::new());
        for rendered in objects {
            let mut object: Value = rendered.object.read()?;
            let kind = object["kind"].as_str().unwrap_or_default();
            let is_wanted = call.config.kinds.iter().any(|wanted| wanted == kind);
            if is_wanted && edit(&mut object, &call.config, &variables) {
                edits = edits.replace(rendered, &object);
                states.push(rendered.state.as_str());
            }
        }
        match (&call.config.trusted_ca, states.iter().min()) {
            (Some(name), Some(first)) => Ok(edits.add("trusted-ca", first, &config_map(call, name))),
            _ => Ok(edits),
        }
    }
}

export_plugin!(ClusterProxy: PostRenderer);

/// The variables that are set; programs disagree on upper and lower case.
fn variables(status: &Status) -> Vec<(String, &str)> {
    let Status { http_proxy, https_proxy, no_proxy } = status;
    if http_proxy.is_empty() && https_proxy.is_empty() {
        return Vec::new();
    }
    let all = [("HTTP_PROXY", http_proxy), ("HTTPS_PROXY", https_proxy), ("NO_PROXY", no_proxy)];
    let set = all.into_iter().filter(|(_, value)| !value.is_empty());
    set.flat_map(|(name, value)| [(name.to_owned(), value.as_str()), (name.to_lowercase(), value)]).collect()
}

/// Puts proxy and certificates into the containers; false when there was nothing to change.
fn edit(object: &mut Value, config: &Config, variables: &[(String, &str)]) -> bool {
    let Some(pod) = object.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut) else {
        return false;
    };
    let mut is_changed = false;
    for list in ["initContainers", "containers"] {
        for container in pod.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default();
            let is_wanted = config.container.as_ref().is_none_or(|wanted| wanted == name);
            if let (true, Some(container)) = (is_wanted, container.as_object_mut()) {
                is_changed = true;
                for (name, value) in variables {
                    put(container, "env", json!({"name": name, "value": value}));
                }
                if config.trusted_ca.is_some() {
                    let mount = json!({"name": VOLUME, "mountPath": config.mount_path, "readOnly": true});
                    put(container, "volumeMounts", mount);
                }
            }
        }
    }
    if let (true, Some(map)) = (is_changed, &config.trusted_ca) {
        let items = json!([{"key": "ca-bundle.crt", "path": FILE}]);
        put(pod, "volumes", json!({"name": VOLUME, "configMap": {"name": map, "items": items}}));
    }
    is_changed
}

/// Adds to a list by name; what the chart itself has said under that name stays.
fn put(object: &mut Map<String, Value>, list: &str, item: Value) {
    let list = object.entry(list).or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    if !list.iter().any(|known| known["name"] == item["name"]) {
        list.push(item);
    }
}

/// OpenShift writes the certificates into any ConfigMap with this label. Its data is not ours.
fn config_map(call: &Call<Config>, name: &str) -> Value {
    let labels = json!({"config.openshift.io/inject-trusted-cabundle": "true"});
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": call.context.release.namespace, "labels": labels}})
}

#[cfg(test)]
mod tests;
