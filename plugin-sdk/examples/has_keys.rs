//! The smallest useful plugin: a ConfigMap is ready once it has the keys that the config names.
//!
//! `cargo build --profile guest --target wasm32-unknown-unknown -p pintle-plugin-sdk --example has_keys`

use std::collections::BTreeMap;

use pintle_plugin_sdk::{Answer, Blocker, Check, Failure, Manifest, Readiness, export_readiness};
use serde::Deserialize;

/// `spec.config` of the Plugin object.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    keys: Vec<String>,
}

/// What this plugin looks at in a ConfigMap.
#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

struct HasKeys;

impl Readiness for HasKeys {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("has-keys", "0.1.0").reasons(["KeyMissing"])
    }

    fn check(check: &Check<Config>) -> Result<Answer, Failure> {
        let map: ConfigMap = check.target()?;
        let missing = check.config.keys.iter().filter(|key| !map.data.contains_key(*key));
        let blockers = missing.map(|key| Blocker::new("KeyMissing", format!("the key {key} is not there")));
        Ok(Answer::unless(blockers))
    }
}

export_readiness!(HasKeys);
