// Reads JSON where it lies: no tree, no recursion, nothing to free. What is not there, and what is not of the
// expected shape, is an empty text.

#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

/// Some bytes of UTF-8, without a zero at the end.
typedef struct {
  const char *at;
  size_t len;
} text;

/// The text of a literal.
#define TEXT(literal) ((text){literal, sizeof(literal) - 1})

bool is_text(text one, text other);

/// Both texts, and more up to an empty one, in memory that lives as long as the call.
text join(const text *parts, size_t count);
#define JOIN(...) join((const text[]){__VA_ARGS__}, sizeof((const text[]){__VA_ARGS__}) / sizeof(text))

/// The value of a key, as JSON.
text json_get(text object, text key);

/// The value of a key as a string, without quotes and escapes.
text json_get_string(text object, text key);

/// The whole number of a key; `missing` where there is none.
long long json_get_number(text object, text key, long long missing);

/// The next element of an array, which `rest` becomes the remainder of; empty after the last.
/// Begin with the whole array in `rest`.
text json_next(text *rest);

#endif
