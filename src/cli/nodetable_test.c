/* SPDX-License-Identifier: MIT */
/* Nodes as people see them. */
#include "cli/nodetable.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/units.h"
#include "tap.h"

enum { NODES = 2000, ROWS_BYTES = 1 << 20, TEXT_BYTES = 1 << 20 };

static uint8_t bytes[ROWS_BYTES];
static size_t len;
static char text[TEXT_BYTES];
static uint64_t storage[NODES / 64 + 64];
static struct nodeset only;
static uint32_t switches[NODES];
static char switch_names[2][NODESPEC_WORD_MAX] = {"s0", "s1"};

static struct node_row node(uint32_t number) {
    return (struct node_row){.node = number,
                             .pes = 4,
                             .since_ns = NS_PER_S,
                             .seen_ns = 1,
                             .load_x100 = 10,
                             .memory_used = GIB,
                             .memory_bytes = 24 * GIB};
}

static void add(struct node_row r) {
    char name[24];
    snprintf(name, sizeof name, "n%u", r.node);
    r.name = bytes_from_str(name);
    long n = node_row_encode(&r, room_of(bytes + len, sizeof bytes - len));
    CHECK(n > 0);
    len += n > 0 ? (size_t)n : 0;
}

static void begin(void) {
    len = 0;
    nodeset_init(&only, NODES, storage);
}

typedef int print_nodes(const struct nodetable *t, FILE *to);

static const char *shown(print_nodes *print, const struct nodespec *spec) {
    struct nodetable t;
    FILE *f = fmemopen(text, sizeof text, "w");
    CHECK_EQ(nodetable_init(&t, spec, bytes_of(bytes, len), &only), 0);
    CHECK_EQ(print(&t, f), 0);
    nodetable_fini(&t);
    fclose(f);
    return text;
}

static const char *folded(void) {
    return shown(nodetable_print_folded, &(struct nodespec){0});
}

/* What they do and how they are loaded differs; nodes of one state are in one row all the same. */
static void test_alike(void) {
    begin();
    for (uint32_t i = 0; i < 6; i++) {
        struct node_row r = node(i);
        r.load_x100 += i;
        r.memory_used = (uint64_t)(i + 1) * GIB;
        r.since_ns += i * NS_PER_S;
        r.state = (uint8_t)(i == 2 ? NODE_DRAINED : NODE_UP);
        r.reason = bytes_from_str(i == 2 ? "new fan" : "");
        add(r);
    }
    CHECK_STR(
        folded(),
        "NODES       COUNT  STATE    USED  PES       LOAD      MEM      OF  SINCE                JOBS  REASON\n"
        "n[0-1,3-5]      5  up          0    4  0.10-0.15  1-6 GiB  24 GiB  1970-01-01 00:00:06        \n"
        "n2              1  drained     0    4       0.12    3 GiB  24 GiB  1970-01-01 00:00:03        new fan\n");
    nodeset_add_range(&only, 1, 2);
    CHECK(strstr(folded(), "\nn1 ") != NULL && strstr(text, "\nn2 ") != NULL);
    CHECK(strstr(text, "n0") == NULL && strstr(text, "n3") == NULL);
}

/* Jobs, processors, how many are used, and switches keep them apart. */
static void test_apart(void) {
    static const uint8_t jobs[] = {7, 0, 0, 0, 9, 0, 0, 0};
    struct nodespec spec = {
        .nodes = NODES, .switches = switches, .names = switch_names, .switch_count = 2};
    begin();
    for (uint32_t i = 0; i < 10; i++) {
        struct node_row r = node(i);
        switches[i] = i < 8 ? 1 : 2;
        r.jobs = bytes_of(jobs, i < 2 ? sizeof jobs : i < 4 ? 4 : 0);
        r.used = i == 4 ? 1 : 0;
        r.pes = i == 5 ? 8 : 4;
        r.state = (uint8_t)(i == 9 ? NODE_DOWN : NODE_UP);
        add(r);
    }
    shown(nodetable_print_folded, &spec);
    static const char *const rows[] = {"\nn[0-1] ", "\nn[2-3] ", "\nn4 ", "\nn5 ",
                                       "\nn[6-7] ", "\nn8 ",     "\nn9 "};
    const char *at = text;
    for (size_t i = 0; at != NULL && i < sizeof rows / sizeof *rows; i++)
        CHECK((at = strstr(at, rows[i])) != NULL);
    CHECK(strstr(text, " s0 ") != NULL && strstr(text, " s1 ") != NULL);
    CHECK(strstr(text, " 7,9 ") != NULL);
}

static void add_traits(const char *const *traits) {
    begin();
    for (uint32_t i = 0; traits[i] != NULL; i++) {
        struct node_row r = node(i);
        r.traits = bytes_from_str(traits[i]);
        add(r);
    }
}

static void test_attributes(void) {
    add_traits((const char *const[]){"CPU=1GHZ", "CPU=2GHZ", "CPU=1GHZ", "", NULL});
    CHECK(strstr(folded(), " ATTRIBUTES ") != NULL);
    CHECK(strstr(text, "\nn[0,2] ") != NULL && strstr(text, " CPU=1GHZ  ") != NULL);
    CHECK(strstr(text, "\nn1 ") != NULL && strstr(text, " CPU=2GHZ  ") != NULL);
    CHECK(strstr(text, "\nn3 ") != NULL);
    shown(nodetable_print_long, &(struct nodespec){0});
    CHECK(strstr(text, "\nn2 ") != NULL && strstr(text, "ATTRIBUTES") == NULL);
    CHECK(strstr(text, "\n\nn[0,2]: CPU=1GHZ\nn1: CPU=2GHZ\nn3: \n") != NULL);
}

static int print_json(const struct nodetable *t, FILE *to) {
    nodetable_print_json(t, to);
    return 0;
}

static void test_json(void) {
    add_traits((const char *const[]){"CPU=1GHZ OPSYS=\"Some System\" NIC= ROLE=service",
                                     "CUT=\"a b", "nonsense", "", NULL});
    shown(print_json, &(struct nodespec){0});
    CHECK(strstr(text, "\"attributes\":{\"CPU\":\"1GHZ\",\"OPSYS\":\"Some System\",\"NIC\":\"\","
                       "\"ROLE\":\"service\"}") != NULL);
    CHECK(strstr(text, "\"attributes\":{\"CUT\":") != NULL);
    CHECK(strstr(text, "\"name\":\"n2\"") != NULL && strstr(text, "\"attributes\":{}") != NULL);
}

/* However long the names are, they are all there. */
static void test_long(void) {
    begin();
    for (uint32_t i = 0; i < NODES; i++) {
        struct node_row r = node(i);
        r.state = (uint8_t)(i % 2 == 0 ? NODE_UP : NODE_DOWN);
        r.seen_ns = i % 2 == 0;
        add(r);
    }
    folded();
    CHECK(strstr(text, ",996,998,1000,") != NULL &&
          strstr(text, ",1996,1998]   1000  up  ") != NULL);
    CHECK(strstr(text, ",1997,1999]   1000  down") != NULL);
}

static void test_odd(void) {
    struct nodetable t;
    begin();
    CHECK(strchr(folded(), '\n') == text + strlen(text) - 1);
    add(node(0));
    CHECK_EQ(nodetable_init(&t, &(struct nodespec){0}, bytes_of(bytes, len - 1), &only), -EBADMSG);
    nodetable_fini(&t);
}

int main(void) {
    setenv("TZ", "UTC", 1);
    tzset();
    TEST(test_alike);
    TEST(test_apart);
    TEST(test_attributes);
    TEST(test_json);
    TEST(test_long);
    TEST(test_odd);
    return tap_finish();
}
