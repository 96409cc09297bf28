//! What a path and a method mean to the API server.

use http::{Method, Uri};

/// A request for a resource, read from its path as the API server does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural resource; empty for paths outside resources (discovery, health).
    pub resource: String,
    /// `status`, `log`, … or empty.
    pub subresource: String,
    /// Empty for cluster-scoped resources and for all namespaces.
    pub namespace: String,
    /// Empty for lists and creations.
    pub name: String,
    /// Path and query as they came.
    pub path: String,
}

impl Request {
    /// Reads the request line.
    pub(super) fn parse(method: &Method, uri: &Uri) -> Self {
        let path = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
        let query = uri.query().unwrap_or_default();
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        let group = match parts.next() {
            Some("api") => String::new(),
            Some("apis") => parts.next().unwrap_or_default().to_owned(),
            _ => {
                return Self { verb: method.as_str().to_lowercase(), path, ..Self::default() };
            }
        };
        let rest: Vec<&str> = parts.skip(1).collect();
        let (namespace, rest) = match rest.as_slice() {
            // A namespace itself is a cluster-scoped resource, with two subresources.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest.as_slice()),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            rest => ("", rest),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
        let (resource, name, subresource) = (part(0), part(1), part(2));
        let verb = if resource.is_empty() { "get" } else { verb(method, query, name.is_empty()) };
        Self {
            verb: verb.to_owned(),
            group,
            resource,
            subresource,
            namespace: namespace.to_owned(),
            name,
            path,
        }
    }

    /// Whether it may change something a user sees. Leases and Events are left out: they follow the clock, so their
    /// number differs from run to run. So are dry runs, reviews and tokens, which store nothing.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            && !self.resource.is_empty()
            && !matches!(
                self.group.as_str(),
                "authorization.k8s.io" | "authentication.k8s.io" | "events.k8s.io"
            )
            && !matches!(
                (self.group.as_str(), self.resource.as_str()),
                ("", "events") | ("coordination.k8s.io", "leases")
            )
            && self.subresource != "token"
            && !self.path.contains("dryRun=All")
    }
}

fn verb(method: &Method, query: &str, collection: bool) -> &'static str {
    let watches = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"));
    match *method {
        Method::GET | Method::HEAD if watches => "watch",
        Method::GET | Method::HEAD if collection => "list",
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if collection => "deletecollection",
        Method::DELETE => "delete",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn paths_mean_what_they_mean_to_the_api_server() {
        let cases = [
            ("GET", "/api/v1/namespaces/a/pods?watch=true&x=1", "watch  pods  a "),
            ("GET", "/api/v1/pods?limit=5", "list  pods   "),
            ("GET", "/api/v1/namespaces/a", "get  namespaces   a"),
            ("PATCH", "/api/v1/namespaces/a/status", "patch  namespaces status  a"),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "get  pods log a b"),
            ("PATCH", "/apis/apps/v1/namespaces/a/daemonsets/d/status", "patch apps daemonsets status a d"),
            ("POST", "/apis/apps/v1/namespaces/a/deployments", "create apps deployments  a "),
            ("PUT", "/api/v1/nodes/n", "update  nodes   n"),
            ("DELETE", "/api/v1/namespaces/a/secrets", "deletecollection  secrets  a "),
            (
                "DELETE",
                "/apis/sro.openshift.io/v1beta1/specialresources/s",
                "delete sro.openshift.io specialresources   s",
            ),
            ("GET", "/apis/apps/v1", "get apps    "),
            ("GET", "/version", "get     "),
        ];
        for (method, path, wanted) in cases {
            let request = Request::parse(&method.parse().unwrap(), &path.parse().unwrap());
            let Request { verb, group, resource, subresource, namespace, name, .. } = request;
            assert_eq!(
                format!("{verb} {group} {resource} {subresource} {namespace} {name}"),
                wanted,
                "{path}"
            );
        }
    }

    #[test]
    fn what_follows_the_clock_or_stores_nothing_is_no_write() {
        let is_write = |method: &str, path: &str| {
            Request::parse(&method.parse().unwrap(), &path.parse().unwrap()).is_write()
        };
        assert!(is_write("POST", "/api/v1/namespaces/a/configmaps"));
        assert!(is_write("PATCH", "/apis/apps/v1/namespaces/a/daemonsets/d?fieldManager=pintle&force=true"));
        assert!(!is_write("POST", "/api/v1/namespaces/a/configmaps?dryRun=All"));
        assert!(!is_write("POST", "/apis/events.k8s.io/v1/namespaces/a/events"));
        assert!(!is_write("PATCH", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l"));
        assert!(!is_write("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"));
        assert!(!is_write("POST", "/api/v1/namespaces/a/serviceaccounts/s/token"));
        assert!(!is_write("GET", "/api/v1/namespaces/a/configmaps"));
    }
}
