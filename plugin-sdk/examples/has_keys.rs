//! A ConfigMap is ready once it has the keys that the config names.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{Answer, Blocker, Call, Failure, Json, Manifest, Plugin, Readiness};
use pintle_plugin_sdk::{config::config, export_plugin};
use serde::Deserialize;

config! {
    /// `spec.config` of the Plugin object.
    pub struct Config {
        /// Keys that must be there.
        keys: Vec<String> = Vec::new(),
    }
}

/// What this plugin looks at in a ConfigMap.
#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

struct HasKeys;

impl Plugin for HasKeys {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("has-keys", "0.1.0").config::<Config>().reasons(["KeyMissing"])
    }
}

impl Readiness for HasKeys {
    fn check(call: &Call<Config>, target: &Json) -> Result<Answer, Failure> {
        let map: ConfigMap = target.read()?;
        let missing = call.config.keys.iter().filter(|key| !map.data.contains_key(*key));
        let blockers = missing.map(|key| Blocker::new("KeyMissing", format!("the key {key} is not there")));
        Ok(Answer::unless(blockers))
    }
}

export_plugin!(HasKeys: Readiness);

/// On the machine of its author a plugin is an ordinary function; `fake` stands in for the host.
#[cfg(not(target_arch = "wasm32"))]
pub fn example() {
    use serde_json::json;

    let host = pintle_plugin_sdk::fake::Host::new().config(json!({"keys": ["a", "b"]}));
    let answer = host.check::<HasKeys>(json!({"data": {"a": "1"}}));
    assert!(answer.is_ok_and(|answer| answer.blockers()[0].message == "the key b is not there"));
}
