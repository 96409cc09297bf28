//! Pools: nodes that need a rendering of their own because they run another kernel.

use std::collections::BTreeMap;

use pintle_api::{Answer, Facts, Object, Query, names};

/// Nodes of one kernel and operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// `4.18.0-305.10.2.el8_4.x86_64`.
    pub kernel: String,
    /// `8.4`; empty where the image's name does not tell.
    pub os_version: String,
    /// OpenShift version the operating system belongs to, `4.8`; empty where unknown.
    pub cluster_version: String,
    /// Names of its nodes, sorted.
    pub nodes: Vec<String>,
    /// What a plugin made it of; absent for the nodes of one kernel.
    pub mapped: Option<MappedPool>,
}

/// Key and labels of a pool that a plugin made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedPool {
    /// A DNS label of at most 20 characters: the suffix of its objects.
    pub key: String,
    /// Labels of its nodes: they go into the node selector of its workloads.
    pub node_selector: BTreeMap<String, String>,
}

/// The nodes a release may use, by pool. The order is that of the kernels' names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// By kernel.
    pub pools: Vec<Pool>,
    /// Labels of passed states that nodes carry, by node.
    pub node_to_marks: BTreeMap<String, Vec<String>>,
}

// === impl Pool ===

impl Pool {
    /// The name of the pool in status and memory: the suffix of its objects, a DNS label.
    #[must_use]
    pub fn key(&self) -> String {
        match &self.mapped {
            Some(mapped) => mapped.key.clone(),
            None => affinity_suffix(&self.os_version, &self.kernel),
        }
    }

    /// `8` of `8.4`.
    #[must_use]
    pub fn os_major(&self) -> &str {
        self.os_version.split('.').next().unwrap_or_default()
    }
}

// === impl Pools ===

impl Pools {
    /// Groups the nodes that match `selector` and that workloads may be placed on.
    ///
    /// Taints of `node.kubernetes.io/*` do not count: cordoning the last node of a kernel must not
    /// unload its driver.
    pub fn observe(facts: &dyn Facts, selector: &BTreeMap<String, String>) -> Answer<Self> {
        facts.list(&Self::query(selector)).map(|nodes| Self::group(nodes.iter().map(|node| &**node)))
    }

    /// The nodes that match `selector`.
    #[must_use]
    pub fn query(selector: &BTreeMap<String, String>) -> Query {
        let label_selector = (!selector.is_empty())
            .then(|| selector.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(","));
        Query { api_version: "v1".into(), kind: "Node".into(), namespace: None, label_selector }
    }

    /// The pool that a plugin made of these nodes; nothing when workloads may be placed on none of them.
    /// Kernel and versions are those of its nodes where all have the same.
    #[must_use]
    pub fn mapped(&self, mapped: MappedPool, nodes: &[&str]) -> Option<Pool> {
        let has_any = |pool: &&Pool| pool.nodes.iter().any(|node| nodes.contains(&node.as_str()));
        let kernels: Vec<&Pool> = self.pools.iter().filter(has_any).collect();
        let usable = kernels.iter().flat_map(|pool| &pool.nodes);
        let mut own: Vec<_> = usable.filter(|node| nodes.contains(&node.as_str())).cloned().collect();
        own.sort();
        let common = |field: fn(&Pool) -> &str| {
            let mut texts = kernels.iter().map(|pool| field(pool));
            let first = texts.next().unwrap_or_default();
            if texts.all(|text| text == first) { first.to_owned() } else { String::new() }
        };
        (!own.is_empty()).then(|| Pool {
            kernel: common(|pool| &pool.kernel),
            os_version: common(|pool| &pool.os_version),
            cluster_version: common(|pool| &pool.cluster_version),
            nodes: own,
            mapped: Some(mapped),
        })
    }

    fn group<'a>(nodes: impl Iterator<Item = &'a Object>) -> Self {
        let mut kernel_to_pool: BTreeMap<String, Pool> = BTreeMap::new();
        let mut node_to_marks = BTreeMap::new();
        for node in nodes {
            node_to_marks.insert(node.name().to_owned(), marks_of(node));
            if is_tainted(node) {
                continue;
            }
            let kernel = node.str_at("/status/nodeInfo/kernelVersion").unwrap_or_default();
            if kernel.is_empty() {
                continue;
            }
            let pool = kernel_to_pool.entry(kernel.to_owned()).or_insert_with(|| {
                let (cluster_version, os_version) = parse_os(node);
                Pool {
                    kernel: kernel.to_owned(),
                    os_version,
                    cluster_version,
                    nodes: Vec::new(),
                    mapped: None,
                }
            });
            pool.nodes.push(node.name().to_owned());
        }
        kernel_to_pool.values_mut().for_each(|pool| pool.nodes.sort());
        Self { pools: kernel_to_pool.into_values().collect(), node_to_marks }
    }

    /// Names of all nodes, sorted.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        let mut nodes: Vec<_> = self.pools.iter().flat_map(|pool| pool.nodes.clone()).collect();
        nodes.sort();
        nodes
    }
}

/// `-`-less suffix of objects that exist once per kernel: FNV-1a, 64 bits, hexadecimal without
/// padding, of `<os version>-<kernel with dashes for underscores>` (`reference/sro.md` KA-4).
#[must_use]
pub fn affinity_suffix(os_version: &str, kernel: &str) -> String {
    format!("{:x}", fnv1a(format!("{os_version}-{}", kernel.replace('_', "-")).as_bytes()))
}

/// FNV-1a, 64 bits.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn marks_of(node: &Object) -> Vec<String> {
    let labels = node.at("/metadata/labels").and_then(serde_json::Value::as_object);
    let keys = labels.into_iter().flatten().map(|(key, _)| key);
    keys.filter(|key| key.starts_with(names::SRO_NODE_STATE)).cloned().collect()
}

fn is_tainted(node: &Object) -> bool {
    let taints = node.at("/spec/taints").and_then(serde_json::Value::as_array);
    taints.into_iter().flatten().any(|taint| {
        let text = |field: &str| taint.get(field).and_then(serde_json::Value::as_str).unwrap_or_default();
        matches!(text("effect"), "NoSchedule" | "NoExecute")
            && !text("key").starts_with("node.kubernetes.io/")
    })
}

/// (OpenShift version, operating system version) of a node.
///
/// OpenShift writes both into the image's name, `… 48.84.202106301921-0 (Ootpa)`: version 4.8 on
/// 8.4. Elsewhere the labels of Node Feature Discovery tell the operating system.
fn parse_os(node: &Object) -> (String, String) {
    let image = node.str_at("/status/nodeInfo/osImage").unwrap_or_default();
    if let Some(found) = image.split_whitespace().find_map(parse_coreos_build) {
        return found;
    }
    let label = |key: &str| node.label(&format!("feature.node.kubernetes.io/system-os_release.{key}"));
    let os = label("RHEL_VERSION").or_else(|| label("VERSION_ID")).unwrap_or_default();
    (String::new(), os.to_owned())
}

/// `48.84.202106301921-0` is (4.8, 8.4); `410.84.…` is (4.10, 8.4).
fn parse_coreos_build(word: &str) -> Option<(String, String)> {
    let (version, serial) = word.split_once('-')?;
    let mut parts = version.split('.');
    let (cluster, os, date) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = parts.next().is_none()
        && [cluster, os, date, serial].into_iter().all(is_number)
        && cluster.len() >= 2
        && os.len() >= 2
        && date.len() == 12;
    fits.then(|| (split_version(cluster), split_version(os)))
}

fn split_version(digits: &str) -> String {
    let (major, minor) = digits.split_at(1);
    format!("{major}.{minor}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn node(name: &str, kernel: &str, taint: Option<&str>) -> Object {
        Object::new(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"taints": taint.map(|key| json!([{"key": key, "effect": "NoSchedule"}]))},
            "status": {"nodeInfo": {
                "kernelVersion": kernel,
                "osImage": "Red Hat Enterprise Linux CoreOS 48.84.202106301921-0 (Ootpa)"
            }}
        }))
        .unwrap()
    }

    #[test]
    fn suffixes_are_those_that_clusters_already_have() {
        for (os, kernel, suffix) in [
            ("8.4", "4.18.0-305.10.2.el8_4.x86_64", "12813789169ac0ee"),
            ("8.4", "4.18.0-305.40.2.el8_4.x86_64", "e383247e62b56585"),
        ] {
            // The published vectors replace the underscore in `x86_64` too.
            assert_eq!(affinity_suffix(os, kernel), suffix);
        }
        assert_eq!(format!("{:x}", fnv1a(b"")), "cbf29ce484222325");
        assert_eq!(format!("{:x}", fnv1a(b"special-resource-operator")), "20db61ac8744a54a");
        assert_eq!(format!("{:x}", fnv1a(b"8.4-4.18.0-305.28.1.el8-4.x86-64")), "9fc22c2a546999c");
    }

    #[test]
    fn nodes_are_grouped_by_kernel_and_a_cordon_does_not_count() {
        let nodes = [
            node("b", "k1", None),
            node("a", "k1", Some("node.kubernetes.io/unschedulable")),
            node("c", "k2", None),
            node("d", "k3", Some("node-role.kubernetes.io/master")),
        ];
        let pools = Pools::group(nodes.iter()).pools;
        assert_eq!(pools.len(), 2);
        assert_eq!(pools[0].nodes, ["a", "b"]);
        assert_eq!((pools[0].os_version.as_str(), pools[0].cluster_version.as_str()), ("8.4", "4.8"));
        assert_eq!(pools[0].os_major(), "8");
    }

    #[test]
    fn a_plugins_pool_has_what_its_nodes_have_in_common() {
        let nodes = [node("a", "k1", None), node("b", "k1", None), node("c", "k2", None)];
        let pools = Pools::group(nodes.iter().chain([&node("d", "k2", Some("role/master"))]));
        let mapped = || MappedPool { key: "gpu".into(), node_selector: BTreeMap::new() };
        let one = pools.mapped(mapped(), &["b", "a"]).unwrap();
        assert_eq!((one.key().as_str(), one.kernel.as_str(), one.os_version.as_str()), ("gpu", "k1", "8.4"));
        assert_eq!(one.nodes, ["a", "b"]);
        let both = pools.mapped(mapped(), &["a", "c"]).unwrap();
        assert_eq!((both.kernel.as_str(), both.os_version.as_str()), ("", "8.4"));
        assert_eq!(pools.mapped(mapped(), &["d", "gone"]), None, "nobody may be placed there");
    }

    #[test]
    fn an_image_name_without_a_build_number_tells_nothing() {
        assert_eq!(parse_coreos_build("410.84.202203081640-0").unwrap().0, "4.10");
        assert!(parse_coreos_build("Debian").is_none());
        assert!(parse_coreos_build("20.04.1-5").is_none());
    }
}
