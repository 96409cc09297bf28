//! In which order objects are written and removed.

use crate::manifest::Document;

/// An order of kinds. Kinds it does not name come last, by name; objects of one kind keep their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Helm's order for installing.
    #[default]
    Install,
    /// Helm's order for uninstalling.
    Uninstall,
    /// Helm's order for installing, with OpenShift's kinds before Service, as the Special Resource Operator
    /// had it.
    SpecialResource,
}

/// Helm 4's order up to role bindings.
const BEFORE: [&str; 23] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
];

/// What the Special Resource Operator put in between. Its list also named `Certificates`, a kind that does
/// not exist: a Certificate came last there, and does here.
const OPENSHIFT: [&str; 4] = ["Issuer", "SecurityContextConstraints", "ImageStream", "BuildConfig"];

/// Helm 4's order from services on.
const AFTER: [&str; 15] = [
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Helm 4's order for uninstalling: not quite the reverse.
const UNINSTALL: [&str; 38] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "APIService",
    "Ingress",
    "IngressClass",
    "Service",
    "CronJob",
    "Job",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "DaemonSet",
    "RoleBindingList",
    "RoleBinding",
    "RoleList",
    "Role",
    "ClusterRoleBindingList",
    "ClusterRoleBinding",
    "ClusterRoleList",
    "ClusterRole",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ConfigMap",
    "SecretList",
    "Secret",
    "ServiceAccount",
    "PodDisruptionBudget",
    "PodSecurityPolicy",
    "LimitRange",
    "ResourceQuota",
    "NetworkPolicy",
    "Namespace",
    "PriorityClass",
];

// === impl Order ===

impl Order {
    /// What to sort a kind by: its place, then its name where it has none.
    #[must_use]
    pub fn key(self, kind: &str) -> (usize, String) {
        let place = match self {
            Self::Install => BEFORE.iter().chain(&AFTER).position(|known| *known == kind),
            Self::SpecialResource => {
                BEFORE.iter().chain(&OPENSHIFT).chain(&AFTER).position(|known| *known == kind)
            }
            Self::Uninstall => UNINSTALL.iter().position(|known| *known == kind),
        };
        match place {
            Some(place) => (place, String::new()),
            None => (usize::MAX, kind.to_owned()),
        }
    }
}

/// Sorts documents by kind; those of one kind keep their order.
pub fn sort(documents: &mut [Document], order: Order) {
    documents.sort_by_cached_key(|document| order.key(document.object.kind()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(order: Order, kinds: &[&'static str]) -> Vec<&'static str> {
        let mut kinds = kinds.to_vec();
        kinds.sort_by_cached_key(|kind| order.key(kind));
        kinds
    }

    #[test]
    fn kinds_nobody_knows_come_last_by_name() {
        let kinds = ["Zebra", "Deployment", "Apple", "Service", "Namespace", "APIService", "DaemonSet"];
        let expected = ["Namespace", "Service", "DaemonSet", "Deployment", "APIService", "Apple", "Zebra"];
        assert_eq!(sorted(Order::Install, &kinds), expected);
        let expected = ["APIService", "Service", "Deployment", "DaemonSet", "Namespace", "Apple", "Zebra"];
        assert_eq!(sorted(Order::Uninstall, &kinds), expected);
    }

    #[test]
    fn openshifts_kinds_stand_between_roles_and_services() {
        let kinds =
            ["DaemonSet", "BuildConfig", "Certificate", "RoleBinding", "ImageStream", "Issuer", "Service"];
        let expected =
            ["RoleBinding", "Issuer", "ImageStream", "BuildConfig", "Service", "DaemonSet", "Certificate"];
        assert_eq!(sorted(Order::SpecialResource, &kinds), expected);
        assert_eq!(sorted(Order::Install, &["BuildConfig", "Service"]), ["Service", "BuildConfig"]);
    }

    #[test]
    fn both_lists_of_helm_name_the_same_kinds() {
        let mut install: Vec<_> = BEFORE.iter().chain(&AFTER).collect();
        let mut uninstall: Vec<_> = UNINSTALL.iter().collect();
        install.sort();
        uninstall.sort();
        assert_eq!(install, uninstall);
    }
}
