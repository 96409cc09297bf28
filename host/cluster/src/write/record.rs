//! The lease record: the one write that needs no permit, as permits come from it.

use serde_json::Value;

use crate::{
    counters::Verb,
    link::{Failure, Link, Query},
};

const RESOURCE: &str = "leases.coordination.k8s.io";

fn path(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

/// The lease as it is; `None` when there is none.
pub(crate) async fn read(link: &Link, namespace: &str, name: &str) -> Result<Option<Value>, Failure> {
    let request = Query::new(&format!("{}/{name}", path(namespace))).get();
    match link.send(Verb::Get, RESOURCE, request).await {
        Ok(reply) => reply.json().map(Some),
        Err(failure) if failure.code() == Some(404) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Makes the lease; fails when somebody was faster.
pub(crate) async fn create(link: &Link, namespace: &str, lease: &Value) -> Result<Value, Failure> {
    link.send(Verb::Create, RESOURCE, Query::new(&path(namespace)).post(lease)).await?.json()
}

/// Replaces the lease at the resourceVersion it carries; fails when it is at another by now.
pub(crate) async fn replace(
    link: &Link,
    namespace: &str,
    name: &str,
    lease: &Value,
) -> Result<Value, Failure> {
    let request = Query::new(&format!("{}/{name}", path(namespace))).put(lease);
    link.send(Verb::Update, RESOURCE, request).await?.json()
}
