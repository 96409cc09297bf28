//! A whole reconciler: for an owner with a text there is a ConfigMap with that text.

use pintle_plugin_sdk::{Blocker, Call, Desired, Failure, Live, Manifest, ObjectAccess, Plugin, Reconciler};
use pintle_plugin_sdk::{config::NoConfig, export_plugin, inputs};
use serde::Deserialize;
use serde_json::json;

/// What this plugin looks at in its owner.
#[derive(Deserialize)]
struct Greeting {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    text: String,
}

struct Greeter;

impl Plugin for Greeter {
    type Config = NoConfig;

    fn describe() -> Manifest {
        Manifest::new("greeter", "0.1.0")
            .makes(ObjectAccess::to("", "ConfigMap").in_release())
            .reasons(["NotThereYet"])
    }
}

impl Reconciler for Greeter {
    fn reconcile(call: &Call<NoConfig>, applied: &[Live]) -> Result<Desired, Failure> {
        let Greeting { spec: Spec { text } } = inputs::owner()?;
        let release = &call.context.release;
        let missing = Live::find(applied, "greeting").is_none();
        let blocker = missing.then(|| Blocker::new("NotThereYet", "the ConfigMap is being made"));
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": text},
            "metadata": {"name": release.name, "namespace": release.namespace}});
        let desired = Desired::unless(blocker).status(&json!({"length": text.len()}));
        Ok(desired.object("greeting", &object))
    }
}

export_plugin!(Greeter: Reconciler);

/// On the machine of its author a plugin is an ordinary function; `fake` stands in for the host.
#[cfg(not(target_arch = "wasm32"))]
pub fn example() {
    let host = pintle_plugin_sdk::fake::Host::new().owner(json!({"spec": {"text": "hello"}}));
    let first = host.clone().reconcile::<Greeter>([]);
    assert!(first.is_ok_and(|desired| !desired.is_ready() && desired.objects().count() == 1));
    let then = host.clone().reconcile::<Greeter>([("greeting", json!({}))]);
    assert!(then.is_ok_and(|desired| desired.is_ready()));
    let end = host.finalize::<Greeter>([]);
    assert!(end.is_ok_and(|desired| desired.is_ready() && desired.objects().count() == 0));
}
