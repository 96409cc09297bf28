//! What ends a wait, and who can mend it, by the reason that is told.

/// (what wakes a release that waits for this, who can mend it).
pub(super) fn advice(reason: &str) -> (&'static str, &'static str) {
    of_values(reason)
        .or_else(|| of_chart(reason))
        .or_else(|| of_source(reason))
        .or_else(|| of_cluster(reason))
        .unwrap_or(("a change of the object", "the vendor of the workload"))
}

/// What was written for this owner.
fn of_values(reason: &str) -> Option<(&'static str, &'static str)> {
    Some(match reason {
        "InvalidValues" => ("other values", "whoever wrote the values"),
        "ValuesMissing" | "ValuesUnknown" => {
            ("the object that valuesFrom names", "whoever wrote the values, or makes that object")
        }
        "InvalidSpec" | "ReleaseNameTaken" => ("a change of the spec", "whoever wrote the object"),
        // A value may be missing that the chart requires, or the template may be wrong.
        "RenderError" => {
            ("a new chart or other values", "whoever wrote the values, else the author of the chart")
        }
        _ => return None,
    })
}

/// What the chart says.
fn of_chart(reason: &str) -> Option<(&'static str, &'static str)> {
    Some(match reason {
        "GateInvalid"
        | "Invalid"
        | "GateNotJudgeable"
        | "ImmutableField"
        | "InvalidManifest"
        | "ForbiddenKind"
        | "UnknownAnnotation"
        | "InvalidAnnotation"
        | "AnnotationNotServed"
        | "ChartBroken"
        | "ChartNotInstallable"
        | "HookInvalid" => ("a new chart or other values", "the author of the chart"),
        "KubeVersion" => {
            ("a chart for this version of Kubernetes, or another version", "the author of the chart")
        }
        _ if reason.starts_with("Build") || reason == "NoBuild" => {
            ("a change of the build", "the author of the build")
        }
        _ => return None,
    })
}

/// Where charts and plugins come from.
fn of_source(reason: &str) -> Option<(&'static str, &'static str)> {
    const NEXT_TRY: &str = "the next try, within 5 minutes";
    const ADMINISTRATOR: &str = "the administrator of the cluster and its registries";
    Some(match reason {
        "RegistryUnreachable"
        | "RepositoryUnreachable"
        | "RepositoryFailed"
        | "RepositoryUntrusted"
        | "CertificateUntrusted"
        | "PullFailed"
        | "Unauthorized"
        | "IndexBroken" => (NEXT_TRY, ADMINISTRATOR),
        "SecretMissing" | "SecretInvalid" | "SecretUnknown" | "ConfigMapMissing" | "ConfigMapDenied"
        | "PullSecretMissing" | "PullSecretInvalid" | "PullConfigInvalid" => {
            ("a change of that object", "the administrator of the cluster, or whoever wrote the source")
        }
        "ChartMissing"
        | "VersionMissing"
        | "NotFound"
        | "VersionInvalid"
        | "RepositoryInvalid"
        | "RepositoryNotServed"
        | "InvalidReference"
        | "PathOutside"
        | "FileUnreadable"
        | "DigestMismatch"
        | "WrongDigest" => {
            ("a change of the source, or the next try", "whoever wrote the source, or pushes the chart")
        }
        "PluginMissing" | "PluginNotReady" | "PluginNotAdmitted" => {
            ("a change of the Plugin", "the administrator, by installing it")
        }
        "ErrImagePull" | "ImagePullBackOff" => (
            "the build of the image, or the kubelet's next try",
            "the chart's build, or whoever pushes the image",
        ),
        _ => return None,
    })
}

/// What the cluster allows and has.
fn of_cluster(reason: &str) -> Option<(&'static str, &'static str)> {
    Some(match reason {
        "Forbidden" => ("the next try, within 5 minutes", "the administrator of the cluster, by a rule"),
        "KindNotInstalled" => {
            ("the kind's installation", "the administrator, by installing what brings the kind")
        }
        "OwnedByOther" => {
            ("a change of the object or its owner", "whoever owns the object, or `adopt: Force`")
        }
        "OldPods" => ("the end of the old pods", "whoever may delete pods"),
        "QuotaExceeded" => ("the next try, within 5 minutes", "the administrator of the namespace"),
        "NamespaceMissing" => ("the namespace", "whoever may make namespaces, or `createNamespace: true`"),
        "NamespaceNotEmpty" => {
            ("the end of those objects", "whoever owns them, or `pintle.dev/force-delete` on the owner")
        }
        "NoMatchingNodes" | "Unschedulable" => ("a change of the nodes", "the administrator of the nodes"),
        "ServerBusy" | "ServerUnavailable" | "WebhookFailed" => {
            ("the next try, within 5 minutes", "the administrator of the cluster")
        }
        "BeingDeleted" | "NamespaceTerminating" => {
            ("the end of the deletion", "whoever holds its finalizers")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_mend_it_is_who_made_it() {
        for (reason, who) in [
            ("InvalidValues", "whoever wrote the values"),
            ("RenderError", "whoever wrote the values, else the author of the chart"),
            ("RegistryUnreachable", "the administrator of the cluster and its registries"),
            ("OldPods", "whoever may delete pods"),
            ("GateInvalid", "the author of the chart"),
            ("OfSomePlugin", "the vendor of the workload"),
        ] {
            assert_eq!(advice(reason).1, who, "{reason}");
        }
    }
}
