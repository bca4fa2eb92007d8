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

int main(void) {
    TEST(test_document);
    return tap_finish();
}
