//! Labels, annotations, finalizers and managers, each named once.

/// Field manager of every apply, and `app.kubernetes.io/name` of our own objects.
pub const MANAGER: &str = "pintle";
/// API group of our own kinds.
pub const GROUP: &str = "pintle.dev";
/// Prefix of our annotations; an unknown key under it is an error of the chart.
pub const PREFIX: &str = "pintle.dev/";
/// Prefix of SRO's annotations; an unknown key under it is ignored.
pub const SRO_PREFIX: &str = "specialresource.openshift.io/";

/// Label on every applied object: uid of the release's owner. Selects our informers.
pub const OWNER: &str = "pintle.dev/owner";
/// Annotation on every applied object: `<kind>/<namespace>/<name>` of the release's owner, for people.
pub const OWNED_BY: &str = "pintle.dev/owned-by";
/// Name of the SpecialResource for whose `dependencies` another was made.
pub const DEPENDENCY_OF: &str = "pintle.dev/dependency-of";
/// Annotation on a namespace that we created: owner uid.
pub const CREATED_BY: &str = "pintle.dev/created-by";
/// Annotation on an owner: a new value forces a pass.
pub const RECONCILE_AT: &str = "pintle.dev/reconcile-at";
/// Annotation on an owner: `"true"` pauses everything, `"until-deleted"` everything but deletion.
pub const PAUSE: &str = "pintle.dev/pause";
/// Annotation on an owner: `"true"` skips plugins and waits on deletion, never the deletes. On a Watch that is being
/// deleted: its owners are let go, and their objects left running.
pub const FORCE_DELETE: &str = "pintle.dev/force-delete";

/// Gates of an object: terms joined by `&&`.
pub const WAIT: &str = "pintle.dev/wait";
/// Gate in CEL over `object`.
pub const READY_WHEN: &str = "pintle.dev/ready-when";
/// State number of an object in a chart without numbered files.
pub const STATE: &str = "pintle.dev/state";
/// How long a gate may wait.
pub const TIMEOUT: &str = "pintle.dev/timeout";
/// What happens when a gate fails: `retry`, `stop`, `rollback`.
pub const ON_FAILURE: &str = "pintle.dev/on-failure";
/// Chart: plugins that map values, in order.
pub const VALUE_MAPPER: &str = "pintle.dev/value-mapper";
/// Chart: plugins that change what was rendered, in order.
pub const POST_RENDERER: &str = "pintle.dev/post-renderer";
/// Chart: plugins called around the release and its states, in order.
pub const HOOKS: &str = "pintle.dev/hooks";
/// Plugin called before the object's state.
pub const PRE: &str = "pintle.dev/pre";
/// Plugin called after the object's state.
pub const POST: &str = "pintle.dev/post";
/// Rendered once per pool.
pub const PER_POOL: &str = "pintle.dev/per-pool";
/// Chart: `all` gates each object whose kind has a builtin rule.
pub const GATES: &str = "pintle.dev/gates";
/// Chart: where states come from besides files.
pub const STATES: &str = "pintle.dev/states";
/// When an object that left the chart goes: `before`, `after`.
pub const PRUNE: &str = "pintle.dev/prune";
/// `"true"`: delete and create on a change of an immutable field.
pub const RECREATE: &str = "pintle.dev/recreate";
/// Chart: template language.
pub const ENGINE: &str = "pintle.dev/engine";

/// Every annotation of ours that a chart may carry.
pub const CHART_ANNOTATIONS: [&str; 17] = [
    WAIT,
    READY_WHEN,
    STATE,
    TIMEOUT,
    ON_FAILURE,
    VALUE_MAPPER,
    POST_RENDERER,
    HOOKS,
    PRE,
    POST,
    PER_POOL,
    GATES,
    STATES,
    PRUNE,
    RECREATE,
    ENGINE,
    "pintle.dev/schema",
];

/// SRO: `"true"` waits for the object.
pub const SRO_WAIT: &str = "specialresource.openshift.io/wait";
/// SRO: RE2 that the log of every pod of the object must match.
pub const SRO_WAIT_FOR_LOGS: &str = "specialresource.openshift.io/wait-for-logs";
/// SRO: `driver-container` pairs a DaemonSet with the build of its image.
pub const SRO_STATE: &str = "specialresource.openshift.io/state";
/// SRO: the vendor that pairs a DaemonSet with its BuildConfig.
pub const SRO_VENDOR: &str = "specialresource.openshift.io/driver-container-vendor";
/// SRO: `"true"` makes one object per kernel.
pub const SRO_KERNEL_AFFINE: &str = "specialresource.openshift.io/kernel-affine";
/// SRO: `"true"` puts the cluster's proxy into the first container.
pub const SRO_PROXY: &str = "specialresource.openshift.io/proxy";
/// SRO: label on every applied object and its pod template.
pub const SRO_OWNED: &str = "specialresource.openshift.io/owned";
/// SRO: hash of the rendered object.
pub const SRO_HASH: &str = "specialresource.openshift.io/hash";
/// SRO: prefix of the node label of a passed state, `<prefix><release>-<state>`.
pub const SRO_NODE_STATE: &str = "specialresource.openshift.io/state-";
/// ConfigMap in the operator's namespace in which SRO keeps which SpecialResource needs which other.
pub const SRO_DEPENDENCIES: &str = "special-resource-dependencies";
/// NFD: label of a node with its kernel.
pub const NFD_KERNEL: &str = "feature.node.kubernetes.io/kernel-version.full";

/// Helm: name of the release an object belongs to.
pub const HELM_RELEASE_NAME: &str = "meta.helm.sh/release-name";
/// Helm: namespace of the release an object belongs to.
pub const HELM_RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
/// Who manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Helm: makes an object a hook.
pub const HELM_HOOK: &str = "helm.sh/hook";
/// Helm: order of hooks.
pub const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";
/// Helm: when a hook goes.
pub const HELM_HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
/// Helm: `keep` survives the release.
pub const HELM_RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// Finalizer on SpecialResources, SRO's own name.
pub const SRO_FINALIZER: &str = "sro.openshift.io/finalizer";
/// Finalizer that SRO 4.9 left on SpecialResources.
pub const SRO_FINALIZER_OLD: &str = "finalizer.sro.openshift.io";
/// Finalizer on owners of Watch releases.
pub const FINALIZER: &str = "pintle.dev/release";
/// Finalizer on a Watch, from its first release on: nobody else looks after the owners that [`FINALIZER`] holds.
pub const WATCH_FINALIZER: &str = "pintle.dev/watch";
/// Finalizers that the hybrid and the classic Helm operator left on owners.
pub const HYBRID_FINALIZERS: [&str; 2] =
    ["uninstall-helm-release", "helm.sdk.operatorframework.io/uninstall-release"];
/// Domain of the annotations that those operators read on owners.
pub const HYBRID_DOMAIN: &str = "helm.sdk.operatorframework.io";
/// Finalizer that keeps the object of a hook until its result is recorded.
pub const HOOK_FINALIZER: &str = "pintle.dev/hook";
