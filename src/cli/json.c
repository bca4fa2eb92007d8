/* SPDX-License-Identifier: MIT */
/* Writes JSON: see json.h. */
#include "cli/json.h"

#include <inttypes.h>

#include "base/units.h"

/* What is no UTF-8 is passed on as it is, except for what JSON forbids. */
static void quote(FILE *out, struct bytes text) {
    fputc('"', out);
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.at[i];
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void begin(struct json *j, const char *key) {
    if (j->more)
        fputc(',', j->out);
    j->more = true;
    if (key != NULL)
        fprintf(j->out, "\"%s\":", key);
}

void json_open(struct json *j, const char *key, char bracket) {
    begin(j, key);
    fputc(bracket, j->out);
    j->more = false;
}

void json_close(struct json *j, char bracket) {
    fputc(bracket, j->out);
    j->more = true;
}

void json_text(struct json *j, const char *key, struct bytes text) {
    begin(j, key);
    quote(j->out, text);
}

void json_word(struct json *j, const char *key, const char *text) {
    json_text(j, key, bytes_from_str(text));
}

void json_number(struct json *j, const char *key, uint64_t number) {
    begin(j, key);
    fprintf(j->out, "%" PRIu64, number);
}

void json_signed(struct json *j, const char *key, int64_t number) {
    begin(j, key);
    fprintf(j->out, "%" PRId64, number);
}

void json_decimal(struct json *j, const char *key, double number, int digits) {
    begin(j, key);
    fprintf(j->out, "%.*f", digits, number);
}

void json_null(struct json *j, const char *key) {
    begin(j, key);
    fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool value) {
    begin(j, key);
    fputs(value ? "true" : "false", j->out);
}

void json_ms(struct json *j, const char *key, uint64_t ns) {
    begin(j, key);
    fprintf(j->out, "%" PRIu64 ".%06" PRIu64, ns / NS_PER_MS, ns % NS_PER_MS);
}

void json_time(struct json *j, const char *key, uint64_t ns) {
    if (ns == 0) {
        json_null(j, key);
        return;
    }
    begin(j, key);
    fprintf(j->out, "%" PRIu64 ".%06" PRIu64, ns / NS_PER_S, ns % NS_PER_S / 1000);
}
