// The logic on the machine of its author: sh tests/run.sh

#include <stdio.h>
#include <string.h>

#include "../logic.h"

static reading next;
static reading answer_next(const object *other) { return (void)other, next; }

static int failures;

static void expect(const char *name, reading given, ending ending, text reason) {
  text args = TEXT("{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\",\"condition\":\"Available\"}");
  object other = reference(args, TEXT("shop"));
  next = given;
  outcome found = check(args, TEXT("{}"), &other, answer_next);
  if (found.ending == ending && is_text(found.reason, reason)) return;
  failures++;
  printf("%s: ended as %d, waits for %.*s: %.*s\n", name, found.ending, (int)found.reason.len, found.reason.at,
         (int)found.message.len, found.message.at);
}

#define FOUND_AS(json) ((reading){FOUND, TEXT(json)})
#define MET_CONDITION "\"conditions\": [{\"type\": \"Other\"}, {\"type\": \"Available\", \"status\": \"True\"}]"

int main(void) {
  expect("a met condition", FOUND_AS("{\"metadata\":{\"generation\":1},\"status\":{" MET_CONDITION "}}"), MET, TEXT(""));
  expect("no object", (reading){NOT_FOUND, TEXT("")}, WAITING, TEXT("ObjectMissing"));
  expect("no kind", (reading){KIND_UNKNOWN, TEXT("")}, WAITING, TEXT("KindNotInstalled"));
  expect("no status", FOUND_AS("{\"metadata\":{}}"), WAITING, TEXT("ConditionMissing"));
  expect("odd conditions", FOUND_AS("{\"status\":{\"conditions\":7}}"), WAITING, TEXT("ConditionMissing"));
  expect("cut off", FOUND_AS("{\"status\":{\"conditions\":[{\"type\":\"Avail"), WAITING, TEXT("ConditionMissing"));
  expect("an unmet condition", FOUND_AS("{\"status\":{\"conditions\":[{\"type\":\"Available\",\"status\":\"False\"}]}}"),
         WAITING, TEXT("ConditionNotMet"));
  expect("an old status", FOUND_AS("{\"metadata\":{\"generation\":2},\"status\":{\"observedGeneration\":1," MET_CONDITION "}}"),
         WAITING, TEXT("StatusIsOld"));
  expect("denied", (reading){REFUSED, TEXT("no")}, FAILED, TEXT(""));
  expect("out of reach", (reading){OUT_OF_REACH, TEXT("no")}, FAILED_FOR_NOW, TEXT(""));
  text escaped = json_get_string(TEXT("{\"a\": \"x\\\"\\n\\u00e4\\ud83d\\ude00\"}"), TEXT("a"));
  if (!is_text(escaped, TEXT("x\"\n\xc3\xa4\xf0\x9f\x98\x80"))) failures++, puts("escapes are read wrong");
  if (refused(TEXT("{\"condition\": \"\"}")).len == 0) failures++, puts("an empty condition was accepted");
  puts(failures == 0 ? "all as expected" : "FAILED");
  return failures != 0;
}
