// What the plugin decides. It knows nothing of WebAssembly, so `tests/run.sh` tests it natively.

#ifndef LOGIC_H
#define LOGIC_H

#include "json.h"

extern const text MANIFEST;

/// Fields that are read of the other object.
#define FIELDS 3
extern const text fields[FIELDS];

/// An object; the namespace is empty for kinds that have none.
typedef struct {
  text api_version, kind, namespace_, name;
} object;

/// How a read ends: with JSON, or why there is none.
typedef enum { FOUND, NOT_FOUND, KIND_UNKNOWN, REFUSED, OUT_OF_REACH } answer;
typedef struct {
  answer answer;
  text text;
} reading;
typedef reading reader(const object *other);

/// How a check ends: `message` is a line for the log, what is waited for, or why there is no answer.
typedef enum { MET, WAITING, FAILED, FAILED_FOR_NOW } ending;
typedef struct {
  ending ending;
  text reason, message;
} outcome;

/// The object that the annotation names.
object reference(text args, text namespace_);

/// Whether the other object has the condition.
outcome check(text args, text config, const object *other, reader *read);

/// Why a config is refused that its schema cannot tell is wrong; empty where it is not.
text refused(text config);

#endif
