// The logic on the machine of its author: node --test

import assert from "node:assert/strict";
import { test } from "node:test";

import { Blocker, Failure, check, reference, validate } from "./logic.js";

const ARGS = { apiVersion: "apps/v1", kind: "Deployment", name: "web", condition: "Available" };

function waitingFor(answer) {
  const read = () => {
    if (answer.refused) throw answer.refused;
    return JSON.stringify({ metadata: { generation: answer.generation ?? 1 }, status: answer.status });
  };
  const found = check(ARGS, {}, reference(ARGS, "shop"), read);
  return found instanceof Blocker ? found.reason : undefined;
}

const MET = [{ type: "Available", status: "True" }];

test("a met condition is ready", () => {
  assert.equal(waitingFor({ status: { conditions: MET } }), undefined);
});

test("what is unknown is never ready", () => {
  assert.equal(waitingFor({ refused: "not-found" }), "ObjectMissing");
  assert.equal(waitingFor({ refused: "kind-unknown" }), "KindNotInstalled");
  assert.equal(waitingFor({}), "ConditionMissing");
  assert.equal(waitingFor({ status: { conditions: [{ type: "Available", status: "False" }] } }), "ConditionNotMet");
  assert.throws(() => waitingFor({ refused: new Failure("no") }), { message: "Deployment shop/web cannot be read: no" });
});

test("a status of an old generation is not ready", () => {
  assert.equal(waitingFor({ generation: 2, status: { observedGeneration: 1, conditions: MET } }), "StatusIsOld");
});

test("an empty condition in the config is refused", () => {
  assert.throws(() => validate({ condition: "" }), { message: "spec.config.condition is empty" });
});
