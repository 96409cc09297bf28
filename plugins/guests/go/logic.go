package main

// What the plugin decides. It knows nothing of WebAssembly, so `go test` tests it.

import (
	"encoding/json"
	"errors"
	"fmt"
)

var fields = []string{"metadata.generation", "status.observedGeneration", "status.conditions"}

const manifest = `{
  "manifest": "pintle.dev/manifest/v1",
  "name": "wait-for",
  "version": "0.1.0",
  "description": "Waits until another object has a condition",
  "configSchema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "condition": {
        "type": "string",
        "description": "The condition to wait for where the annotation names none.",
        "default": "Ready"
      }
    }
  },
  "argsSchema": {
    "type": "object",
    "additionalProperties": false,
    "required": ["apiVersion", "kind", "name"],
    "properties": {
      "apiVersion": {"type": "string", "description": "Such as apps/v1."},
      "kind": {"type": "string", "description": "Such as Deployment."},
      "name": {"type": "string", "description": "Name of the object."},
      "namespace": {
        "type": "string",
        "description": "Its namespace; without it that of the release, empty for kinds that have none."
      },
      "condition": {"type": "string", "description": "The condition to wait for."}
    }
  },
  "needs": {
    "read": [{
      "apiGroups": ["apps"],
      "kinds": ["Deployment"],
      "namespaces": ["$release"],
      "fields": ["metadata.generation", "status.observedGeneration", "status.conditions"]
    }]
  },
  "reasons": ["ObjectMissing", "KindNotInstalled", "StatusIsOld", "ConditionMissing", "ConditionNotMet"],
  "appliedFields": ["metadata.name"]
}`

// Blocker is what is being waited for.
type Blocker struct{ Reason, Message string }

// Failure says why there is no answer; IsPassing where it may go better the next time.
type Failure struct {
	Message   string
	IsPassing bool
}

func (f Failure) Error() string { return f.Message }

// What a read may end with besides a Failure.
var (
	ErrNotFound    = errors.New("not found")
	ErrKindUnknown = errors.New("the cluster does not serve this kind")
)

// Object names an object; Namespace is empty for kinds that have none.
type Object struct{ APIVersion, Kind, Namespace, Name string }

// Args are those of the annotation.
type Args struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Name       string  `json:"name"`
	Namespace  *string `json:"namespace"`
	Condition  string  `json:"condition"`
}

// Config is spec.config of the Plugin.
type Config struct {
	Condition *string `json:"condition"`
}

// Validate refuses a config that its schema cannot tell is wrong.
func (c Config) Validate() error {
	if c.Condition != nil && *c.Condition == "" {
		return Failure{Message: "spec.config.condition is empty"}
	}
	return nil
}

// Other is the object that the annotation names.
func (a Args) Other(namespace string) Object {
	if a.Namespace != nil {
		namespace = *a.Namespace
	}
	return Object{a.APIVersion, a.Kind, namespace, a.Name}
}

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

type seen struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Status struct {
		ObservedGeneration *int64 `json:"observedGeneration"`
		Conditions         []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// Check returns what is waited for, or the sentence for the log when the condition is met.
func Check(args Args, config Config, other Object, read func(Object, []string) (string, error)) (*Blocker, string, error) {
	wanted := "Ready"
	if config.Condition != nil {
		wanted = *config.Condition
	}
	if args.Condition != "" {
		wanted = args.Condition
	}
	text, err := read(other, fields)
	var failure Failure
	switch {
	case errors.Is(err, ErrNotFound):
		return waiting("ObjectMissing", "%s does not exist yet", other)
	case errors.Is(err, ErrKindUnknown):
		return waiting("KindNotInstalled", "the cluster does not serve %s of %s yet", other.Kind, other.APIVersion)
	case errors.As(err, &failure):
		return nil, "", Failure{fmt.Sprintf("%s cannot be read: %s", other, failure.Message), failure.IsPassing}
	case err != nil:
		return nil, "", err
	}
	var object seen
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return nil, "", fmt.Errorf("%s is not as expected: %w", other, err)
	}
	if seen := object.Status.ObservedGeneration; seen != nil && *seen < object.Metadata.Generation {
		return waiting("StatusIsOld", "the status of %s is of generation %d, not %d", other, *seen, object.Metadata.Generation)
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type != wanted {
			continue
		}
		if condition.Status == "True" {
			return nil, fmt.Sprintf("%s of %s is met", wanted, other), nil
		}
		message := fmt.Sprintf("%s of %s is %s", wanted, other, condition.Status)
		if condition.Message != "" {
			message += ": " + condition.Message
		}
		return &Blocker{"ConditionNotMet", message}, "", nil
	}
	return waiting("ConditionMissing", "%s has no condition %s yet", other, wanted)
}

func waiting(reason, format string, values ...any) (*Blocker, string, error) {
	return &Blocker{reason, fmt.Sprintf(format, values...)}, "", nil
}
