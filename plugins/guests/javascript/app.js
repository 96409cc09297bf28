// Between Pintle and the logic: bindings in, plain values out. Nothing here needs to change.

import { config } from "pintle:plugin/inputs@0.1.0";
import { get } from "pintle:plugin/kube-read@0.1.0";
import { emit } from "pintle:plugin/log@0.1.0";
import { Blocker, Failure, MANIFEST, check, reference, validate } from "./logic.js";

export const pluginInfo = {
  describe: () => JSON.stringify(MANIFEST),
  validateConfig: guarded((config) => validate(JSON.parse(config))),
};

export const readiness = {
  check: guarded((ctx) => {
    const other = reference(JSON.parse(ctx.args), ctx.release.namespace);
    const found = check(JSON.parse(ctx.args), JSON.parse(config()), other, read);
    if (!(found instanceof Blocker)) {
      emit("debug", found, [["name", other.name]]);
      return { verdict: { tag: "ready" }, report: report() };
    }
    const { reason, message } = found;
    const pending = { blockers: [{ object: other, node: undefined, reason, message }], watch: [] };
    return { verdict: { tag: "pending", val: pending }, report: report() };
  }),
};

/** What is not caught would end the call without a word: here it becomes a log line and a failure. */
function guarded(run) {
  return (...given) => {
    try {
      return run(...given);
    } catch (error) {
      let retry = "with-back-off";
      let message = error?.message ?? String(error);
      if (error instanceof Failure) {
        if (!error.isPassing) retry = "when-inputs-change";
      } else {
        const where = String(error?.stack ?? "").split("\n")[0];
        message = `${error?.name ?? "Error"}: ${message} (${where})`;
        emit("error", message, []);
      }
      throw { retry, message, blockers: [], report: report() };
    }
  };
}

function read(other, fields) {
  try {
    return get(other, fields);
  } catch (refused) {
    const { tag, val } = refused.payload ?? {};
    switch (tag) {
      case "not-found":
      case "kind-unknown":
        throw tag;
      case "denied":
        throw new Failure(val);
      case "too-large":
        throw new Failure(`it is too large, ${val} bytes`);
      case "unavailable":
        throw new Failure(val, true);
      default:
        throw refused;
    }
  }
}

function report() {
  return { conditions: [], events: [], actions: [] };
}
