#include "logic.h"

const text fields[FIELDS] = {TEXT("metadata.generation"), TEXT("status.observedGeneration"), TEXT("status.conditions")};

const text MANIFEST = TEXT(
    "{\"manifest\": \"pintle.dev/manifest/v1\", \"name\": \"wait-for\", \"version\": \"0.1.0\","
    " \"description\": \"Waits until another object has a condition\","
    " \"configSchema\": {\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "  \"condition\": {\"type\": \"string\", \"default\": \"Ready\","
    "   \"description\": \"The condition to wait for where the annotation names none.\"}}},"
    " \"argsSchema\": {\"type\": \"object\", \"additionalProperties\": false,"
    "  \"required\": [\"apiVersion\", \"kind\", \"name\"], \"properties\": {"
    "  \"apiVersion\": {\"type\": \"string\", \"description\": \"Such as apps/v1.\"},"
    "  \"kind\": {\"type\": \"string\", \"description\": \"Such as Deployment.\"},"
    "  \"name\": {\"type\": \"string\", \"description\": \"Name of the object.\"},"
    "  \"namespace\": {\"type\": \"string\", \"description\":"
    "   \"Its namespace; without it that of the release, empty for kinds that have none.\"},"
    "  \"condition\": {\"type\": \"string\", \"description\": \"The condition to wait for.\"}}},"
    " \"needs\": {\"read\": [{\"apiGroups\": [\"apps\"], \"kinds\": [\"Deployment\"], \"namespaces\": [\"$release\"],"
    "  \"fields\": [\"metadata.generation\", \"status.observedGeneration\", \"status.conditions\"]}]},"
    " \"reasons\": [\"ObjectMissing\", \"KindNotInstalled\", \"StatusIsOld\", \"ConditionMissing\", \"ConditionNotMet\"],"
    " \"appliedFields\": [\"metadata.name\"]}");

object reference(text args, text namespace_) {
  object other = {json_get_string(args, TEXT("apiVersion")), json_get_string(args, TEXT("kind")), namespace_,
                  json_get_string(args, TEXT("name"))};
  if (json_get(args, TEXT("namespace")).len > 0) other.namespace_ = json_get_string(args, TEXT("namespace"));
  return other;
}

text refused(text config) {
  bool is_empty = is_text(json_get(config, TEXT("condition")), TEXT("\"\""));
  return is_empty ? TEXT("spec.config.condition is empty") : TEXT("");
}

static text wanted_condition(text args, text config) {
  text wanted = json_get_string(args, TEXT("condition"));
  if (wanted.len == 0) wanted = json_get_string(config, TEXT("condition"));
  return wanted.len > 0 ? wanted : TEXT("Ready");
}

static outcome waiting(text reason, text message) { return (outcome){WAITING, reason, message}; }

static outcome judged(text place, text wanted, text seen) {
  text status = json_get(seen, TEXT("status"));
  text observed = json_get(status, TEXT("observedGeneration")), metadata = json_get(seen, TEXT("metadata"));
  long long generation = json_get_number(metadata, TEXT("generation"), 0);
  if (json_get_number(status, TEXT("observedGeneration"), generation) < generation) {
    text now = json_get(metadata, TEXT("generation"));
    return waiting(TEXT("StatusIsOld"),
                   JOIN(TEXT("the status of "), place, TEXT(" is of generation "), observed, TEXT(", not "), now));
  }
  text conditions = json_get(status, TEXT("conditions")), condition;
  while ((condition = json_next(&conditions)).len > 0) {
    if (!is_text(json_get_string(condition, TEXT("type")), wanted)) continue;
    text state = json_get_string(condition, TEXT("status")), why = json_get_string(condition, TEXT("message"));
    if (is_text(state, TEXT("True"))) {
      return (outcome){MET, TEXT(""), JOIN(wanted, TEXT(" of "), place, TEXT(" is met"))};
    }
    text colon = why.len > 0 ? TEXT(": ") : TEXT("");
    return waiting(TEXT("ConditionNotMet"), JOIN(wanted, TEXT(" of "), place, TEXT(" is "), state, colon, why));
  }
  return waiting(TEXT("ConditionMissing"), JOIN(place, TEXT(" has no condition "), wanted, TEXT(" yet")));
}

outcome check(text args, text config, const object *other, reader *read) {
  text slash = other->namespace_.len > 0 ? TEXT("/") : TEXT("");
  text place = JOIN(other->kind, TEXT(" "), other->namespace_, slash, other->name);
  reading seen = read(other);
  switch (seen.answer) {
    case FOUND:
      return judged(place, wanted_condition(args, config), seen.text);
    case NOT_FOUND:
      return waiting(TEXT("ObjectMissing"), JOIN(place, TEXT(" does not exist yet")));
    case KIND_UNKNOWN:
      return waiting(TEXT("KindNotInstalled"), JOIN(TEXT("the cluster does not serve "), other->kind, TEXT(" of "),
                                                    other->api_version, TEXT(" yet")));
    case REFUSED:
    case OUT_OF_REACH:
      break;
  }
  ending ending = seen.answer == REFUSED ? FAILED : FAILED_FOR_NOW;
  return (outcome){ending, TEXT(""), JOIN(place, TEXT(" cannot be read: "), seen.text)};
}
