//! Accounts for operators: each test its own, so that the audit log tells their requests apart.

use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use pintle::scenario;
use pintle_dev::ControlPlane;
use serde_json::{Value, json};

/// How long the API server may take to know a new right.
const PATIENCE: Duration = Duration::from_secs(10);

/// A ServiceAccount `name` beside the operator's own.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its name, in the operator's namespace.
    pub name: String,
    /// How it reaches the API server.
    pub config: kube::Config,
}

// === impl Account ===

impl Account {
    /// An account with the very rights of the operator's own: the same roles, bound once more.
    ///
    /// # Errors
    /// When the API server refuses an object.
    pub async fn like_the_operators(plane: &ControlPlane, name: &str) -> anyhow::Result<Self> {
        let account = Self::with_roles(plane, name, scenario::ACCOUNT, "pintle-leader").await?;
        account.wait_for_rights().await?;
        Ok(account)
    }

    /// An account that a ClusterRole and a Role of the operator's namespace are bound to.
    ///
    /// # Errors
    /// When the API server refuses an object.
    pub async fn with_roles(
        plane: &ControlPlane,
        name: &str,
        cluster_role: &str,
        role: &str,
    ) -> anyhow::Result<Self> {
        let client = plane.client()?;
        let metadata = json!({"name": name, "namespace": scenario::SYSTEM});
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        scenario::apply(&client, account).await?;
        scenario::apply(&client, binding("ClusterRole", name, cluster_role)).await?;
        scenario::apply(&client, binding("Role", name, role)).await?;
        let config = plane.service_account(scenario::SYSTEM, name).await?;
        Ok(Self { name: name.to_owned(), config })
    }

    /// Its name as RBAC and the audit log have it.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", scenario::SYSTEM, self.name)
    }

    /// True when it may do something in the whole cluster.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn may(&self, verb: &str, group: &str, resource: &str) -> anyhow::Result<bool> {
        use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
        let client = Client::try_from(self.config.clone())?;
        let review: SelfSubjectAccessReview = serde_json::from_value(json!({
            "spec": {"resourceAttributes": {"verb": verb, "group": group, "resource": resource}}
        }))?;
        let reviews = kube::Api::<SelfSubjectAccessReview>::all(client);
        let answer = reviews.create(&kube::api::PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// The API server's authorizer reads bindings from a watch: they hold a moment after they were made.
    async fn wait_for_rights(&self) -> anyhow::Result<()> {
        let wait = async {
            while !self.may("patch", "sro.openshift.io", "specialresources").await? {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, wait).await.context("the account got no rights")?
    }
}

/// A ClusterRoleBinding, or a RoleBinding in the operator's namespace.
fn binding(kind: &str, account: &str, role: &str) -> Value {
    let mut metadata = json!({"name": format!("test-{account}")});
    if kind == "Role" {
        metadata["namespace"] = json!(scenario::SYSTEM);
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": scenario::SYSTEM}]
    })
}
