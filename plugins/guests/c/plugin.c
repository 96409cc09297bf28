// Between Pintle and the logic: what the host calls. Nothing here needs to change.
//
// Every call has an instance of its own, so nothing is freed here; what is returned must come from malloc,
// since the bindings free it once the host has read it.

#include "plugin.h"

#include <stdlib.h>
#include <string.h>

#include "logic.h"

static text from(const plugin_string_t *string) { return (text){(const char *)string->ptr, string->len}; }

// A view of a text, for what is only lent.
static plugin_string_t lent(text text) { return (plugin_string_t){(uint8_t *)text.at, text.len}; }

// A copy of a text, for what is returned.
static plugin_string_t given(text text) { return lent(join(&text, 1)); }

static void log_line(pintle_plugin_log_level_t level, text message, text name) {
  plugin_tuple2_string_string_t field = {lent(TEXT("name")), lent(name)};
  plugin_list_tuple2_string_string_t list = {&field, name.len > 0 ? 1 : 0};
  plugin_string_t line = lent(message);
  pintle_plugin_log_emit(level, &line, &list);
}

static reading read_object(const object *other) {
  pintle_plugin_types_object_ref_t target = {
      lent(other->api_version), lent(other->kind), {other->namespace_.len > 0, lent(other->namespace_)}, lent(other->name)};
  plugin_string_t paths[FIELDS];
  for (size_t i = 0; i < FIELDS; i++) paths[i] = lent(fields[i]);
  plugin_list_string_t list = {paths, FIELDS};
  plugin_string_t json;
  pintle_plugin_types_read_error_t why;
  if (pintle_plugin_kube_read_get(&target, &list, &json, &why)) return (reading){FOUND, from(&json)};
  switch (why.tag) {
    case PINTLE_PLUGIN_TYPES_READ_ERROR_NOT_FOUND:
      return (reading){NOT_FOUND, TEXT("")};
    case PINTLE_PLUGIN_TYPES_READ_ERROR_KIND_UNKNOWN:
      return (reading){KIND_UNKNOWN, TEXT("")};
    case PINTLE_PLUGIN_TYPES_READ_ERROR_TOO_LARGE:
      return (reading){REFUSED, TEXT("it is too large")};
    case PINTLE_PLUGIN_TYPES_READ_ERROR_UNAVAILABLE:
      return (reading){OUT_OF_REACH, from(&why.val.unavailable)};
    default:
      return (reading){REFUSED, from(&why.val.denied)};
  }
}

static void put_failure(pintle_plugin_types_failure_t *failure, text message, bool is_passing) {
  memset(failure, 0, sizeof *failure);
  failure->retry = is_passing ? PINTLE_PLUGIN_TYPES_RETRY_WITH_BACK_OFF : PINTLE_PLUGIN_TYPES_RETRY_WHEN_INPUTS_CHANGE;
  failure->message = given(message);
}

static void put_blocker(pintle_plugin_types_verdict_t *verdict, const object *other, const outcome *found) {
  pintle_plugin_types_blocker_t *blocker = calloc(1, sizeof *blocker);
  if (blocker == NULL) abort();
  blocker->object.is_some = true;
  blocker->object.val = (pintle_plugin_types_object_ref_t){given(other->api_version),
                                                          given(other->kind),
                                                          {other->namespace_.len > 0, given(other->namespace_)},
                                                          given(other->name)};
  blocker->reason = given(found->reason);
  blocker->message = given(found->message);
  verdict->tag = PINTLE_PLUGIN_TYPES_VERDICT_PENDING;
  verdict->val.pending.blockers.ptr = blocker;
  verdict->val.pending.blockers.len = 1;
}

void exports_pintle_plugin_plugin_info_describe(plugin_string_t *ret) { *ret = given(MANIFEST); }

bool exports_pintle_plugin_plugin_info_validate_config(plugin_string_t *config, plugin_string_t *args,
                                                       pintle_plugin_types_failure_t *err) {
  (void)args;
  text why = refused(from(config));
  if (why.len > 0) put_failure(err, why, false);
  return why.len == 0;
}

bool exports_pintle_plugin_readiness_check(pintle_plugin_types_context_t *ctx, plugin_string_t *target,
                                           exports_pintle_plugin_readiness_answer_t *ret,
                                           pintle_plugin_types_failure_t *err) {
  (void)target;
  plugin_string_t config;
  pintle_plugin_inputs_config(&config);
  text args = from(&ctx->args);
  object other = reference(args, from(&ctx->release.namespace_));
  outcome found = check(args, from(&config), &other, read_object);
  memset(ret, 0, sizeof *ret);
  switch (found.ending) {
    case MET:
      log_line(PINTLE_PLUGIN_LOG_LEVEL_DEBUG, found.message, other.name);
      return true;
    case WAITING:
      put_blocker(&ret->verdict, &other, &found);
      return true;
    default:
      put_failure(err, found.message, found.ending == FAILED_FOR_NOW);
      return false;
  }
}
