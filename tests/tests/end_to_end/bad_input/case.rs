//! One row of the table on the control plane: its namespace, its operator, and what is asserted of it.

use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, DynamicObject},
};
use pintle_api::{Blocker, SpecialResource, status::Condition};
use pintle_operator::Reach;
use pintle_tests::{
    Stage,
    stage::{self, condition},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{
    chart::{Chart, Repository, fixture},
    encode,
    table::{ROWS, Row},
};

/// One row of the table on the control plane.
pub(crate) struct Case {
    pub(crate) stage: Stage,
    row: &'static Row,
}

/// Where the API server is reached as the operator's own account.
pub(crate) async fn reach() -> Reach {
    Reach::Given(Box::new(stage::account(stage::plane().await.unwrap()).await.unwrap()))
}

/// Pushes a guest of the plugin crate's tests; gives its image by digest.
pub(crate) async fn push_guest(name: &str) -> String {
    push_bytes(name, encode::guest(name)).await
}

/// Pushes any bytes as a component; gives their image by digest.
pub(crate) async fn push_bytes(name: &str, bytes: Vec<u8>) -> String {
    stage::push(stage::plane().await.unwrap(), name, bytes).await.unwrap()
}

/// Rights for what these charts apply; once a process.
async fn grant_rights(stage: &Stage) {
    static GRANTED: OnceCell<()> = OnceCell::const_new();
    let grant = async || {
        for text in fixture("rights.yaml").split("\n---\n") {
            stage.apply(serde_yaml::from_str(text).unwrap()).await.unwrap();
        }
    };
    GRANTED.get_or_init(grant).await;
}

// === impl Case ===

impl Case {
    /// The row of this name, with a namespace and an operator of its own.
    pub(crate) async fn begin(name: &str) -> Self {
        let mut case = Self::without_operator(name).await;
        case.stage.start_operator(reach().await);
        case
    }

    /// The row of this name, with a namespace and no operator yet.
    pub(crate) async fn without_operator(name: &str) -> Self {
        let row = ROWS.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"));
        let stage = Stage::without_operator(name).await.unwrap();
        grant_rights(&stage).await;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        stage.apply(namespace).await.unwrap();
        Self { stage, row }
    }

    /// A chart as the only one of ConfigMap `chart`.
    pub(crate) async fn install(&self, chart: Chart) {
        self.install_repository(&chart.repository()).await;
    }

    /// ConfigMap `chart`.
    pub(crate) async fn install_repository(&self, repository: &Repository) {
        self.stage.apply(repository.config_map(&self.stage.name)).await.unwrap();
    }

    /// The SpecialResource, with fields of its spec besides the chart.
    pub(crate) async fn own(&self, more: Value) {
        self.stage.apply(self.owner(&self.stage.name, more)).await.unwrap();
    }

    /// A SpecialResource of any name that this operator takes care of.
    pub(crate) fn owner(&self, name: &str, more: Value) -> Value {
        let mut spec = json!({
            "namespace": name,
            "chart": {
                "name": "steps", "version": "0.1.0",
                "repository": {"name": "tests", "url": format!("cm://{}/chart", self.stage.name)}
            }
        });
        merge(&mut spec, more);
        json!({
            "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
            "metadata": {"name": name, "labels": {"test": self.stage.name}},
            "spec": spec
        })
    }

    /// A chart and an owner for it.
    pub(crate) async fn start(&self, chart: Chart) {
        self.install(chart).await;
        self.own(json!({})).await;
    }

    /// An owner of chart `steps` whose second state waits for the plugin of the row's name.
    pub(crate) async fn start_with_plugin(&self) {
        self.install(Chart::steps()).await;
        self.own(json!({"set": {"wait": self.row.name}})).await;
    }

    /// The Plugin of the row's name.
    pub(crate) async fn plugin(&self, image: &str, more: Value) {
        let mut spec = json!({"image": image});
        merge(&mut spec, more);
        let plugin = json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": self.row.name}, "spec": spec
        });
        self.stage.apply(plugin).await.unwrap();
    }

    /// Waits until the owner stands as the row says.
    pub(crate) async fn fails(&self) -> SpecialResource {
        let row = self.row;
        let what = format!("{} for {} with {:?}", row.condition, row.reason, row.says);
        let owner = self.stage.wait_until(&what, |owner| stands_as(owner, row)).await.unwrap();
        let message = find_condition(&owner, row.condition).map(|found| &found.message);
        println!("{}: {}", row.name, message.unwrap());
        owner
    }

    /// Waits until the owner is Ready.
    pub(crate) async fn ready(&self) {
        self.stage.wait_until_ready().await.unwrap();
    }

    /// The version of a ConfigMap of the release, which must be there.
    pub(crate) async fn is_applied(&self, name: &str) -> String {
        self.config_map(name).await.resource_version().unwrap()
    }

    /// A ConfigMap of the release, which must be there.
    pub(crate) async fn config_map(&self, name: &str) -> DynamicObject {
        self.stage.get("v1", "ConfigMap", "configmaps", name).await.unwrap()
    }

    /// Asserts that ConfigMaps of the release are not there.
    pub(crate) async fn lacks(&self, names: &[&str]) {
        for name in names {
            let found = self.stage.api("v1", "ConfigMap", "configmaps").get_opt(name).await.unwrap();
            assert!(found.is_none(), "{name} was written");
        }
    }

    /// Asserts that a ConfigMap was not written since it had this version.
    pub(crate) async fn is_untouched(&self, name: &str, version: &str) {
        assert_eq!(self.is_applied(name).await, version, "{name} was written");
    }

    /// Deletes a ConfigMap of the release.
    pub(crate) async fn delete(&self, name: &str) {
        let api = self.stage.api("v1", "ConfigMap", "configmaps");
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Ends the operator, which must not have ended by itself, and takes the row's Plugin away: every
    /// operator loads all Plugins.
    pub(crate) async fn end(mut self) {
        self.stage.stop_operator().await.unwrap();
        let plugins: Api<DynamicObject> = Api::all_with(
            self.stage.client.clone(),
            &kube::api::ApiResource::erase::<pintle_api::Plugin>(&()),
        );
        let _ = plugins.delete(self.row.name, &DeleteParams::default()).await;
    }
}

/// True when condition, blocker and texts are those of the row.
fn stands_as(owner: &SpecialResource, row: &Row) -> bool {
    let Some(found) = find_condition(owner, row.condition) else { return false };
    let blockers = blockers(owner);
    let mut texts: Vec<&str> = blockers.iter().map(|blocker| blocker.message.as_str()).collect();
    texts.push(&found.message);
    condition(owner, row.condition).as_deref() == Some("True")
        && found.reason == row.reason
        && (row.blocker.is_empty()
            || owner.status.as_ref().is_some_and(|status| status.blocked == row.blocker)
            || blockers.iter().any(|blocker| blocker.reason == row.blocker))
        && row.says.iter().all(|part| texts.iter().any(|text| text.contains(part)))
}

fn find_condition<'a>(owner: &'a SpecialResource, kind: &str) -> Option<&'a Condition> {
    owner.status.as_ref()?.conditions.iter().find(|condition| condition.kind == kind)
}

/// What all states of an owner wait for.
pub(crate) fn blockers(owner: &SpecialResource) -> Vec<Blocker> {
    let states = owner.status.iter().flat_map(|status| &status.states);
    states.flat_map(|state| state.blockers.clone()).collect()
}

/// Puts fields over others, objects by objects.
fn merge(into: &mut Value, over: Value) {
    match (into, over) {
        (Value::Object(into), Value::Object(over)) => {
            for (key, value) in over {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, over) => *into = over,
    }
}
