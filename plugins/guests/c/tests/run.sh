#!/bin/sh
# Compiles the logic for this machine, with checks for memory errors, and tests it.
set -e
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
${CC:-cc} -std=c11 -g -Wall -Wextra -Werror -fsanitize=address,undefined -o "$out/test" ../json.c ../logic.c test_logic.c
# Nothing is freed on purpose: each call of a plugin has a memory of its own.
ASAN_OPTIONS=detect_leaks=0 "$out/test"
