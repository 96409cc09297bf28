"""What the plugin decides. It knows nothing of WebAssembly, so plain Python tests it."""

import json

FIELDS = ["metadata.generation", "status.observedGeneration", "status.conditions"]

MANIFEST = {
    "manifest": "pintle.dev/manifest/v1",
    "name": "wait-for",
    "version": "0.1.0",
    "description": "Waits until another object has a condition",
    "configSchema": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "condition": {
                "type": "string",
                "description": "The condition to wait for where the annotation names none.",
                "default": "Ready",
            }
        },
    },
    "argsSchema": {
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "name"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Such as apps/v1."},
            "kind": {"type": "string", "description": "Such as Deployment."},
            "name": {"type": "string", "description": "Name of the object."},
            "namespace": {
                "type": "string",
                "description": "Its namespace; without it that of the release, empty for kinds that have none.",
            },
            "condition": {"type": "string", "description": "The condition to wait for."},
        },
    },
    "needs": {
        "read": [{"apiGroups": ["apps"], "kinds": ["Deployment"], "namespaces": ["$release"], "fields": FIELDS}]
    },
    "reasons": ["ObjectMissing", "KindNotInstalled", "StatusIsOld", "ConditionMissing", "ConditionNotMet"],
    "appliedFields": ["metadata.name"],
}


class Blocker(Exception):
    """What is being waited for."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason, self.message = reason, message


class Failure(Exception):
    """Why there is no answer; `is_passing` where it may go better the next time."""

    def __init__(self, message, is_passing=False):
        super().__init__(message)
        self.message, self.is_passing = message, is_passing


class NotFound(Exception):
    """The object is not there."""


class KindUnknown(Exception):
    """The cluster does not serve the kind."""


def validate(config):
    """Refuses a config that its schema cannot tell is wrong."""
    if config.get("condition") == "":
        raise Failure("spec.config.condition is empty")


def reference(args, namespace):
    """The object that the annotation names."""
    return {
        "apiVersion": args["apiVersion"],
        "kind": args["kind"],
        "name": args["name"],
        "namespace": args.get("namespace", namespace) or None,
    }


def check(args, config, other, read):
    """Returns the sentence for the log when the condition is met, else raises what is waited for.

    `other` is the object, `read(other, FIELDS)` its JSON.
    """
    wanted = args.get("condition") or config.get("condition", "Ready")
    kind, name = other["kind"], other["name"]
    place = f"{kind} {other['namespace']}/{name}" if other["namespace"] else f"{kind} {name}"
    try:
        seen = json.loads(read(other, FIELDS))
    except NotFound:
        raise Blocker("ObjectMissing", f"{place} does not exist yet")
    except KindUnknown:
        raise Blocker("KindNotInstalled", f"the cluster does not serve {kind} of {other['apiVersion']} yet")
    except Failure as failure:
        raise Failure(f"{place} cannot be read: {failure.message}", failure.is_passing)
    status = seen.get("status", {})
    generation, observed = seen["metadata"].get("generation", 0), status.get("observedGeneration")
    if observed is not None and observed < generation:
        raise Blocker("StatusIsOld", f"the status of {place} is of generation {observed}, not {generation}")
    for condition in status.get("conditions", []):
        if condition["type"] != wanted:
            continue
        if condition["status"] == "True":
            return f"{wanted} of {place} is met"
        message = f"{wanted} of {place} is {condition['status']}"
        raise Blocker("ConditionNotMet", ": ".join(filter(None, [message, condition.get("message")])))
    raise Blocker("ConditionMissing", f"{place} has no condition {wanted} yet")
