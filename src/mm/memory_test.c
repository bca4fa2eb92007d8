/* SPDX-License-Identifier: MIT */
/* What a node costs the manager: memory that is really used, with sixteen attributes of the administrator's, when all have told
 * what they are like. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/units.h"
#include "mm/inside.h"
#include "tap.h"

enum { FEW = 1000, MANY = 10000, ATTRIBUTES = 16, EFFECTS = 32768, BYTES = 32 << 20, PAGE = 4096 };

struct stage {
    struct mm *mm;
    struct effects out;
    struct effect *list;
    uint8_t *bytes;
    void *memory;
    size_t len;
};

static void feed(struct stage *s, struct input in) {
    struct machine m = mm_machine(s->mm);
    effects_clear(&s->out);
    in.now = NS_PER_S;
    m.step(m.self, &in, &s->out);
}

static size_t in_use(const struct stage *s) {
    size_t pages = (s->len + PAGE - 1) / PAGE, count = 0;
    unsigned char *marks = malloc(pages);
    CHECK_EQ(mincore(s->memory, s->len, marks), 0);
    for (size_t i = 0; i < pages; i++)
        count += marks[i] & 1;
    free(marks);
    return count * PAGE;
}

/* What the administrator says: nodes differ in all of them. */
static struct bytes say(uint32_t nodes, uint8_t *room, size_t cap) {
    struct traits t;
    struct nodeset one;
    void *memory = malloc(traits_bytes(nodes, TRAITS_MAX)), *set = malloc(nodeset_bytes(nodes));
    traits_init(&t, nodes, TRAITS_MAX, memory);
    nodeset_init(&one, nodes, set);
    for (uint32_t a = 0; a < ATTRIBUTES; a++) {
        char name[16];
        snprintf(name, sizeof name, "A%u", a);
        int id = traits_define(&t, name, 1 << TRAITS_IS | 1 << TRAITS_AT_LEAST);
        traits_define_value(&t, "low");
        traits_define_value(&t, "high");
        nodeset_clear(&one);
        nodeset_add_range(&one, a, nodes / 2 + a);
        traits_say(&t, &one, (uint32_t)id, 1);
    }
    long len = traits_encode(&t, room_of(room, cap));
    CHECK(len > 0);
    free(memory);
    free(set);
    return bytes_of(room, (size_t)len);
}

static void report(struct stage *s, uint32_t node) {
    struct traits_report t = traits_report_empty();
    uint8_t told[512], body[1024];
    char host[32];
    snprintf(host, sizeof host, "host%u", node);
    t.values[TRAITS_MEMORY] = (uint64_t)(node % 7 + 1) << 33;
    t.values[TRAITS_PROCESSORS] = 8;
    traits_report_text(&t, TRAITS_HOST, host);
    traits_report_text(&t, TRAITS_ARCH, "x86_64");
    traits_report_text(&t, TRAITS_OPSYS, "Linux");
    long len = traits_report_encode(&t, room_of(told, sizeof told));
    union message have = {.have = {.all = true, .report = bytes_of(told, (size_t)len)}};
    len = message_encode(MESSAGE_HAVE, &have, room_of(body, sizeof body));
    feed(s,
         (struct input){
             .kind = INPUT_MESSAGE,
             .message = {.peer = node, .type = MESSAGE_HAVE, .body = bytes_of(body, (size_t)len)}});
}

static void set_up(struct stage *s, uint32_t nodes) {
    struct roster roster = roster_plain("n", nodes);
    uint8_t *room = malloc(1 << 20);
    struct mm_config c = {
        .limits = {.nodes = nodes, .roots = 1, .body_bytes = 65536, .outstanding = 64},
        .pes = 8,
        .pes_max = 64,
        .jobs_max = 1 << 18,
        .clients_max = 10240,
        .roster = &roster,
        .said = {.traits = say(nodes, room, 1 << 20)}};
    mm_config_times(&c);
    s->len = mm_bytes(&c);
    s->memory = mmap(NULL, s->len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    s->list = malloc(EFFECTS * sizeof *s->list);
    s->bytes = malloc(BYTES);
    effects_init(&s->out, s->list, EFFECTS, s->bytes, BYTES);
    struct arena a;
    arena_init(&a, s->memory, s->len);
    s->mm = mm_new(&c, &a);
    free(room);
}

static size_t measure(uint32_t nodes) {
    struct stage s;
    struct mm_counts counts;
    struct nodeset all;
    void *set = malloc(nodeset_bytes(nodes + 1));
    set_up(&s, nodes);
    nodeset_init(&all, nodes + 1, set);
    nodeset_add_range(&all, 0, nodes - 1);
    feed(&s, (struct input){.kind = INPUT_BOOT,
                            .boot = {.node = nodes, .root = true, .epoch = 1, .boots = 1}});
    feed(&s, (struct input){.kind = INPUT_REPLAY});
    feed(&s, (struct input){.kind = INPUT_NODES, .nodes = {.nodes = &all, .up = true}});
    for (uint32_t n = 0; n < nodes; n++)
        report(&s, n);
    mm_counts(s.mm, &counts);
    CHECK_EQ(counts.nodes_up, nodes);
    size_t used = in_use(&s);
    munmap(s.memory, s.len);
    free(s.list);
    free(s.bytes);
    free(set);
    return used;
}

static void test_a_node(void) {
    size_t few = measure(FEW), many = measure(MANY), each = (many - few) / (MANY - FEW);
    printf("## a node costs the manager %zu bytes\n", each);
    CHECK(each <= 1024);
}

/* An emulator need not know. */
static bool can_look(void) {
    unsigned char mark = 0;
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool known = page != MAP_FAILED && mincore(page, PAGE, &mark) == 0 && (mark & 1) == 0;
    if (known) {
        *(volatile char *)page = 1;
        known = mincore(page, PAGE, &mark) == 0 && (mark & 1) == 1;
    }
    if (page != MAP_FAILED)
        munmap(page, PAGE);
    return known;
}

int main(void) {
    if (!can_look()) {
        SKIP("test_a_node", "which pages are in use is not told here");
        return tap_finish();
    }
    TEST(test_a_node);
    return tap_finish();
}
