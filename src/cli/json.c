/* SPDX-License-Identifier: MIT */
/* Writes JSON: see json.h. */
#include "cli/json.h"

#include <inttypes.h>

#include "base/units.h"

/* How many bytes the character is that text begins with; 0: that is no UTF-8. */
static size_t character(struct bytes text) {
    uint8_t c = text.at[0];
    size_t len = c < 0x80                ? 1
                 : c >= 0xc2 && c < 0xe0 ? 2
                 : c >= 0xe0 && c < 0xf0 ? 3
                 : c >= 0xf0 && c < 0xf5 ? 4
                                         : 0;
    if (len == 0 || len > text.len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((text.at[i] & 0xc0) != 0x80)
            return 0;
    uint8_t second = len > 1 ? text.at[1] : 0; /* overlong, surrogates, too large */
    bool wrong = (c == 0xe0 && second < 0xa0) || (c == 0xed && second >= 0xa0) ||
                 (c == 0xf0 && second < 0x90) || (c == 0xf4 && second >= 0x90);
    return wrong ? 0 : len;
}

/* Programs print what they like, but JSON is UTF-8: a byte that is none becomes U+FFFD. */
static void quote(FILE *out, struct bytes text) {
    fputc('"', out);
    for (size_t i = 0, len; i < text.len; i += len) {
        uint8_t c = text.at[i];
        len = character(bytes_of(text.at + i, text.len - i));
        if (len != 1) {
            fwrite(len == 0 ? (const void *)"\xef\xbf\xbd" : text.at + i, 1, len == 0 ? 3 : len,
                   out);
            len = len == 0 ? 1 : len;
            continue;
        }
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
