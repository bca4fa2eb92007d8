/* SPDX-License-Identifier: MIT */
/* Tests of JSON as commands write it. */
#include "cli/json.h"

#include <stdlib.h>

#include "tap.h"

static void test_document(void) {
    char *text = NULL;
    size_t len = 0;
    struct json j = {.out = open_memstream(&text, &len)};
    json_open(&j, NULL, '[');
    json_open(&j, NULL, '{');
    json_number(&j, "id", UINT64_MAX);
    json_text(&j, "name", bytes_of("a\"b\\\n\x01", 6));
    json_signed(&j, "priority", -5);
    json_null(&j, "end");
    json_bool(&j, "up", true);
    json_time(&j, "start", 1500000000123456789);
    json_time(&j, "stop", 0);
    json_ms(&j, "took_ms", 1500000042);
    json_open(&j, "jobs", '[');
    json_close(&j, ']');
    json_close(&j, '}');
    json_open(&j, NULL, '{');
    json_word(&j, "x", "y");
    json_close(&j, '}');
    json_close(&j, ']');
    fclose(j.out);
    CHECK_STR(
        text,
        "[{\"id\":18446744073709551615,\"name\":\"a\\\"b\\\\\\n\\u0001\",\"priority\":-5,"
        "\"end\":null,\"up\":true,\"start\":1500000000.123456,\"stop\":null,\"took_ms\":1500.000042,\"jobs\":[]},"
        "{\"x\":\"y\"}]");
    free(text);
}

/* Whatever bytes a program prints, the document is UTF-8. */
static void test_bytes_that_are_no_text(void) {
    static const struct {
        const char *in, *out;
    } cases[] = {{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
                 {"a\xff"
                  "b",
                  "a\xef\xbf\xbd"
                  "b"},
                 {"\xc3", "\xef\xbf\xbd"},
                 {"\xc3(", "\xef\xbf\xbd("},
                 {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
                 {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                 {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL, expected[128];
        size_t len = 0;
        struct json j = {.out = open_memstream(&text, &len)};
        json_word(&j, NULL, cases[i].in);
        fclose(j.out);
        snprintf(expected, sizeof expected, "\"%s\"", cases[i].out);
        CHECK_STR(text, expected);
        free(text);
    }
}

int main(void) {
    TEST(test_bytes_that_are_no_text);
    TEST(test_document);
    return tap_finish();
}
