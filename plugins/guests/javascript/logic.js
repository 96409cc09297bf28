// What the plugin decides. It knows nothing of WebAssembly, so plain Node.js tests it.

export const FIELDS = ["metadata.generation", "status.observedGeneration", "status.conditions"];

export const MANIFEST = {
  manifest: "pintle.dev/manifest/v1",
  name: "wait-for",
  version: "0.1.0",
  description: "Waits until another object has a condition",
  configSchema: {
    type: "object",
    additionalProperties: false,
    properties: {
      condition: {
        type: "string",
        description: "The condition to wait for where the annotation names none.",
        default: "Ready",
      },
    },
  },
  argsSchema: {
    type: "object",
    additionalProperties: false,
    required: ["apiVersion", "kind", "name"],
    properties: {
      apiVersion: { type: "string", description: "Such as apps/v1." },
      kind: { type: "string", description: "Such as Deployment." },
      name: { type: "string", description: "Name of the object." },
      namespace: {
        type: "string",
        description: "Its namespace; without it that of the release, empty for kinds that have none.",
      },
      condition: { type: "string", description: "The condition to wait for." },
    },
  },
  needs: {
    read: [{ apiGroups: ["apps"], kinds: ["Deployment"], namespaces: ["$release"], fields: FIELDS }],
  },
  reasons: ["ObjectMissing", "KindNotInstalled", "StatusIsOld", "ConditionMissing", "ConditionNotMet"],
  appliedFields: ["metadata.name"],
};

/** What is being waited for. */
export class Blocker {
  constructor(reason, message) {
    this.reason = reason;
    this.message = message;
  }
}

/** Why there is no answer; `isPassing` where it may go better the next time. */
export class Failure {
  constructor(message, isPassing = false) {
    this.message = message;
    this.isPassing = isPassing;
  }
}

/** Refuses a config that its schema cannot tell is wrong. */
export function validate(config) {
  if (config.condition === "") throw new Failure("spec.config.condition is empty");
}

/** The object that the annotation names. */
export function reference(args, namespace) {
  const { apiVersion, kind, name } = args;
  return { apiVersion, kind, name, namespace: (args.namespace ?? namespace) || undefined };
}

/**
 * Returns a Blocker, or the sentence for the log when the condition is met. `read(other, FIELDS)` is the
 * JSON of the object, or throws one of "not-found", "kind-unknown" and Failure.
 */
export function check(args, config, other, read) {
  const wanted = args.condition || (config.condition ?? "Ready");
  const place = `${other.kind} ${other.namespace ? `${other.namespace}/` : ""}${other.name}`;
  let seen;
  try {
    seen = JSON.parse(read(other, FIELDS));
  } catch (why) {
    if (why === "not-found") return new Blocker("ObjectMissing", `${place} does not exist yet`);
    if (why === "kind-unknown") {
      return new Blocker("KindNotInstalled", `the cluster does not serve ${other.kind} of ${other.apiVersion} yet`);
    }
    if (why instanceof Failure) throw new Failure(`${place} cannot be read: ${why.message}`, why.isPassing);
    throw why;
  }
  const { observedGeneration: observed, conditions = [] } = seen.status ?? {};
  const generation = seen.metadata.generation ?? 0;
  if (observed !== undefined && observed < generation) {
    return new Blocker("StatusIsOld", `the status of ${place} is of generation ${observed}, not ${generation}`);
  }
  const found = conditions.find((condition) => condition.type === wanted);
  if (found === undefined) return new Blocker("ConditionMissing", `${place} has no condition ${wanted} yet`);
  if (found.status === "True") return `${wanted} of ${place} is met`;
  const message = found.message ? `: ${found.message}` : "";
  return new Blocker("ConditionNotMet", `${wanted} of ${place} is ${found.status}${message}`);
}
