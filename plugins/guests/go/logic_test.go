package main

// The logic on the machine of its author: go test

import (
	"errors"
	"testing"
)

func TestWhatIsUnknownIsNeverReady(t *testing.T) {
	met := `"conditions":[{"type":"Available","status":"True"}]`
	for _, given := range []struct {
		name, object string
		err          error
		reason       string
	}{
		{"a met condition", `{"metadata":{"generation":1},"status":{` + met + `}}`, nil, ""},
		{"no object", "", ErrNotFound, "ObjectMissing"},
		{"no kind", "", ErrKindUnknown, "KindNotInstalled"},
		{"no status", `{"metadata":{}}`, nil, "ConditionMissing"},
		{"an unmet condition", `{"status":{"conditions":[{"type":"Available","status":"False"}]}}`, nil, "ConditionNotMet"},
		{"an old status", `{"metadata":{"generation":2},"status":{"observedGeneration":1,` + met + `}}`, nil, "StatusIsOld"},
	} {
		args := Args{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Condition: "Available"}
		read := func(Object, []string) (string, error) { return given.object, given.err }
		blocker, _, err := Check(args, Config{}, args.Other("shop"), read)
		if err != nil {
			t.Fatalf("%s: %v", given.name, err)
		}
		reason := ""
		if blocker != nil {
			reason = blocker.Reason
		}
		if reason != given.reason {
			t.Errorf("%s: waits for %q, not for %q", given.name, reason, given.reason)
		}
	}
}

func TestADeniedReadIsAFailure(t *testing.T) {
	read := func(Object, []string) (string, error) { return "", Failure{Message: "no"} }
	_, _, err := Check(Args{Kind: "Deployment", Name: "web"}, Config{}, Object{Kind: "Deployment", Name: "web"}, read)
	var failure Failure
	if !errors.As(err, &failure) || failure.Message != "Deployment web cannot be read: no" {
		t.Error(err)
	}
}

func TestAnEmptyConditionInTheConfigIsRefused(t *testing.T) {
	empty := ""
	if (Config{Condition: &empty}).Validate() == nil {
		t.Error("it was accepted")
	}
}
