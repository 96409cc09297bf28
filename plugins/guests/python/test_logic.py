"""The logic on the machine of its author: python3 -m unittest"""

import json
import unittest

import logic

ARGS = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "condition": "Available"}


def deployment(generation=1, **status):
    return json.dumps({"metadata": {"generation": generation}, "status": status})


class Check(unittest.TestCase):
    def waiting_for(self, answer):
        def read(other, fields):
            if isinstance(answer, Exception):
                raise answer
            return answer

        try:
            logic.check(ARGS, {}, logic.reference(ARGS, "shop"), read)
        except logic.Blocker as waiting:
            return waiting.reason
        return None

    def test_a_met_condition_is_ready(self):
        met = deployment(conditions=[{"type": "Available", "status": "True"}])
        self.assertIsNone(self.waiting_for(met))

    def test_what_is_unknown_is_never_ready(self):
        self.assertEqual(self.waiting_for(logic.NotFound()), "ObjectMissing")
        self.assertEqual(self.waiting_for(logic.KindUnknown()), "KindNotInstalled")
        self.assertEqual(self.waiting_for(deployment()), "ConditionMissing")
        unmet = deployment(conditions=[{"type": "Available", "status": "False", "message": "no pods"}])
        self.assertEqual(self.waiting_for(unmet), "ConditionNotMet")

    def test_a_status_of_an_old_generation_is_not_ready(self):
        met = [{"type": "Available", "status": "True"}]
        old = deployment(generation=2, observedGeneration=1, conditions=met)
        self.assertEqual(self.waiting_for(old), "StatusIsOld")

    def test_an_empty_condition_in_the_config_is_refused(self):
        with self.assertRaises(logic.Failure):
            logic.validate({"condition": ""})


if __name__ == "__main__":
    unittest.main()
