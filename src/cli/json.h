/* SPDX-License-Identifier: MIT */
/* Writes JSON: objects and lists of what commands show. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"

struct json {
    FILE *out;
    bool more; /* a comma belongs before the next */
};

/* `key` is NULL in a list. */
void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);                 /* '}' or ']' */
void json_text(struct json *j, const char *key, struct bytes text);
void json_word(struct json *j, const char *key, const char *text);
void json_number(struct json *j, const char *key, uint64_t number);
void json_signed(struct json *j, const char *key, int64_t number);
/* With so many digits behind the point. */
void json_decimal(struct json *j, const char *key, double number, int digits);
void json_null(struct json *j, const char *key);
void json_bool(struct json *j, const char *key, bool value);

/* A duration in nanoseconds, as milliseconds. */
void json_ms(struct json *j, const char *key, uint64_t ns);

/* A moment of the calendar in nanoseconds, as seconds; 0 is null. */
void json_time(struct json *j, const char *key, uint64_t ns);
