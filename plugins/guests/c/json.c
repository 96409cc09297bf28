#include "json.h"

#include <stdlib.h>
#include <string.h>

bool is_text(text one, text other) {
  return one.len == other.len && (one.len == 0 || memcmp(one.at, other.at, one.len) == 0);
}

text join(const text *parts, size_t count) {
  size_t len = 0;
  for (size_t i = 0; i < count; i++) len += parts[i].len;
  char *at = malloc(len + 1);
  if (at == NULL) abort();
  char *end = at;
  for (size_t i = 0; i < count; i++) {
    if (parts[i].len > 0) memcpy(end, parts[i].at, parts[i].len);
    end += parts[i].len;
  }
  return (text){at, len};
}

static text skip(text json, size_t count) {
  return count < json.len ? (text){json.at + count, json.len - count} : (text){"", 0};
}

static text trim(text json) {
  while (json.len > 0 && strchr(" \t\r\n,:", json.at[0]) != NULL) json = skip(json, 1);
  return json;
}

// Bytes of the string that `json` begins with, quotes included.
static size_t string_len(text json) {
  for (size_t i = 1; i < json.len; i++) {
    if (json.at[i] == '\\') i++;
    else if (json.at[i] == '"') return i + 1;
  }
  return json.len;
}

// Bytes of the value that `json` begins with.
static size_t value_len(text json) {
  if (json.len == 0) return 0;
  if (json.at[0] == '"') return string_len(json);
  size_t depth = 0;
  for (size_t i = 0; i < json.len; i++) {
    char byte = json.at[i];
    if (byte == '"') {
      i += string_len(skip(json, i)) - 1;
    } else if (byte == '{' || byte == '[') {
      depth++;
    } else if (byte == '}' || byte == ']') {
      if (depth == 0) return i;
      if (--depth == 0) return i + 1;
    } else if (depth == 0 && strchr(" \t\r\n,", byte) != NULL) {
      return i;
    }
  }
  return json.len;
}

// Takes the value that `rest` begins with.
static text take(text *rest) {
  *rest = trim(*rest);
  text value = {rest->at, value_len(*rest)};
  *rest = skip(*rest, value.len);
  return value;
}

static bool is_open(text *rest, char bracket) {
  *rest = trim(*rest);
  if (rest->len == 0 || rest->at[0] != bracket) return false;
  *rest = skip(*rest, 1);
  return true;
}

static text decoded(text json);

text json_get(text object, text key) {
  if (!is_open(&object, '{')) return (text){"", 0};
  for (;;) {
    text name = take(&object);
    if (name.len == 0) return name;
    text value = take(&object);
    if (is_text(decoded(name), key)) return value;
  }
}

text json_next(text *rest) {
  if (rest->len > 0 && trim(*rest).len == rest->len && rest->at[0] != ',' && rest->at[0] != ']') {
    if (!is_open(rest, '[')) return *rest = (text){"", 0};
  }
  return take(rest);
}

static size_t put_utf8(char *at, unsigned code) {
  if (code < 0x80) return at[0] = (char)code, 1;
  if (code < 0x800) return at[0] = (char)(0xc0 | code >> 6), at[1] = (char)(0x80 | (code & 63)), 2;
  if (code < 0x10000) {
    return at[0] = (char)(0xe0 | code >> 12), at[1] = (char)(0x80 | (code >> 6 & 63)), at[2] = (char)(0x80 | (code & 63)), 3;
  }
  at[0] = (char)(0xf0 | code >> 18), at[1] = (char)(0x80 | (code >> 12 & 63));
  at[2] = (char)(0x80 | (code >> 6 & 63)), at[3] = (char)(0x80 | (code & 63));
  return 4;
}

static unsigned hex(text json, size_t at) {
  unsigned code = 0;
  for (size_t i = at; i < at + 4 && i < json.len; i++) {
    char byte = json.at[i];
    code = code << 4 | (unsigned)(byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10);
  }
  return code & 0xffff;
}

// The string behind the quotes of `json`; empty where it is none.
static text decoded(text json) {
  if (json.len < 2 || json.at[0] != '"') return (text){"", 0};
  json = (text){json.at + 1, json.len - 2};
  if (json.len == 0 || memchr(json.at, '\\', json.len) == NULL) return json;
  char *at = malloc(json.len + 1), *end = at;
  if (at == NULL) abort();
  for (size_t i = 0; i < json.len; i++) {
    if (json.at[i] != '\\' || i + 1 >= json.len) {
      *end++ = json.at[i];
      continue;
    }
    static const char names[] = "nrtbf", bytes[] = "\n\r\t\b\f";
    char name = json.at[++i];
    const char *known = strchr(names, name);
    if (name != 'u') {
      *end++ = known != NULL ? bytes[known - names] : name;
      continue;
    }
    unsigned code = hex(json, i + 1);
    i += 4;
    // A pair of surrogates is one character.
    if (code >= 0xd800 && code < 0xdc00 && i + 2 < json.len && json.at[i + 1] == '\\') {
      code = 0x10000 + ((code - 0xd800) << 10) + (hex(json, i + 3) - 0xdc00);
      i += 6;
    }
    end += put_utf8(end, code);
  }
  return (text){at, (size_t)(end - at)};
}

text json_get_string(text object, text key) { return decoded(json_get(object, key)); }

long long json_get_number(text object, text key, long long missing) {
  text value = json_get(object, key);
  long long number = 0;
  size_t i = value.len > 0 && value.at[0] == '-' ? 1 : 0;
  if (i == value.len) return missing;
  for (size_t at = i; at < value.len; at++) {
    if (value.at[at] < '0' || value.at[at] > '9' || number > 1000000000000000) return missing;
    number = number * 10 + (value.at[at] - '0');
  }
  return i == 1 ? -number : number;
}
