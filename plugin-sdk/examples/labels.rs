//! Every rendered object gets the labels of the config, and Ingresses are left out where they are not wanted.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{Call, Edits, Failure, Manifest, Plugin, PostRenderer, Rendered};
use pintle_plugin_sdk::{config::config, export_plugin};
use serde_json::{Value, json};

config! {
    /// `spec.config` of the Plugin object.
    pub struct Config {
        /// Labels for every object.
        labels: BTreeMap<String, String> = BTreeMap::new(),
        /// Whether Ingresses are kept.
        ingress: bool = true,
    }
}

struct Labels;

impl Plugin for Labels {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("labels", "0.1.0").config::<Config>()
    }
}

impl PostRenderer for Labels {
    fn post_render(call: &Call<Config>, objects: &[Rendered]) -> Result<Edits, Failure> {
        let mut edits = Edits::none();
        for rendered in objects {
            let mut object: Value = rendered.object.read()?;
            if object["kind"] == "Ingress" && !call.config.ingress {
                edits = edits.leave_out(rendered);
                continue;
            }
            for (key, value) in &call.config.labels {
                object["metadata"]["labels"][key] = json!(value);
            }
            edits = edits.replace(rendered, &object);
        }
        Ok(edits)
    }
}

export_plugin!(Labels: PostRenderer);

/// On the machine of its author a plugin is an ordinary function; `fake` stands in for the host.
#[cfg(not(target_arch = "wasm32"))]
pub fn example() {
    let host = pintle_plugin_sdk::fake::Host::new();
    let edits = host.config(json!({"labels": {"team": "gpu"}, "ingress": false})).post_render::<Labels>([
        json!({"kind": "Service", "metadata": {"name": "s"}}),
        json!({"kind": "Ingress", "metadata": {"name": "i"}}),
    ]);
    let edits: Vec<_> = edits.iter().flat_map(Edits::iter).collect();
    assert!(edits[0].1.is_some_and(|service| service.contains(r#""labels":{"team":"gpu"}"#)));
    assert_eq!(edits[1], ("Ingress/i", None));
}
