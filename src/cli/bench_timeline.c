/* SPDX-License-Identifier: MIT */
/* storm bench launch --image --timeline: one launch with a program that is sent first, from the beginning of the command to
 * its end: the stages of the STORM paper's figure 6, and those of a launch around them (its section 4.4.1).
 *
 * Two nodes are shown: the one that had the program first, and the one that had it last. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/bench_image.h"
#include "cli/cargo.h"
#include "cli/complain.h"
#include "cli/diaries.h"
#include "cli/plot.h"
#include "cli/timeline.h"

struct story_of_launch {
    struct notes command, first, last; /* the command's, and those of two nodes */
    uint32_t first_node, last_node;
};

/* ---- rows ---- */

static void say_row(struct timeline_row *r) {
    char time[UNITS_TEXT_MAX];
    uint64_t busy = 0;
    for (uint32_t i = 0; i < r->count; i++)
        busy += r->spans[i].to_ns - r->spans[i].from_ns;
    units_format_duration(busy, time, sizeof time);
    if (r->count > 1)
        snprintf(r->words, sizeof r->words, "%" PRIu32 " \u00d7, %s", r->count, time);
    else
        snprintf(r->words, sizeof r->words, "%s", time);
    printf("  %-32s %s\n", r->name, r->words);
}

static void add_deeds(struct timeline *t, const struct notes *n, enum diary_deed deed,
                      uint32_t colour, const char *who, const char *what) {
    char name[40];
    snprintf(name, sizeof name, "%s: %s", who, what);
    struct timeline_row *r = timeline_add(t, colour, name);
    for (uint32_t i = 0; r != NULL && i < n->count; i++)
        if (n->list[i].deed == deed)
            timeline_span(r, n->list[i].from_ns, n->list[i].to_ns);
    if (r != NULL)
        say_row(r);
}

/* From when nothing was left to be written until the next piece had come. */
static void add_waits(struct timeline *t, const struct notes *n, const char *who) {
    char name[40];
    uint64_t since = notes_last(n, DIARY_OPEN);
    snprintf(name, sizeof name, "%s: await received", who);
    struct timeline_row *r = timeline_add(t, 7, name);
    for (uint32_t i = 0; r != NULL && i < n->count; i++) {
        const struct diary_note *d = &n->list[i];
        if (d->deed == DIARY_CAME && since != 0 && d->from_ns > since)
            timeline_span(r, since, d->from_ns);
        if (d->deed == DIARY_CAME)
            since = 0;
        if (d->deed == DIARY_STORE)
            since = d->to_ns;
    }
    if (r != NULL)
        say_row(r);
}

static void add_node(struct timeline *t, const struct notes *n, uint32_t node) {
    char who[16];
    snprintf(who, sizeof who, "n%" PRIu32, node);
    add_deeds(t, n, DIARY_OPEN, 5, who, "open file");
    add_waits(t, n, who);
    add_deeds(t, n, DIARY_STORE, 2, who, "write chunk");
    add_deeds(t, n, DIARY_SEND, 1, who, "send chunk, await sent");
    add_deeds(t, n, DIARY_COMMIT, 4, who, "commit");
}

static void compose(struct timeline *t, const struct story_of_launch *s) {
    static const char command[] = "command";
    uint64_t here = notes_last(&s->last, DIARY_COMMIT),
             runs = notes_last(&s->command, DIARY_LAUNCH);
    t->from_ns = notes_first(&s->command, DIARY_SURVEY);
    t->to_ns = notes_last(&s->command, DIARY_REPORT);
    add_deeds(t, &s->command, DIARY_SURVEY, 6, command, "look over");
    add_deeds(t, &s->command, DIARY_SUBMIT, 6, command, "submit");
    add_deeds(t, &s->command, DIARY_LOAD, 0, command, "read chunk");
    add_deeds(t, &s->command, DIARY_SEND, 1, command, "send chunk, await sent");
    add_node(t, &s->first, s->first_node);
    if (s->last_node != s->first_node)
        add_node(t, &s->last, s->last_node);
    struct timeline_row *r = timeline_add(t, 3, "all nodes: launch");
    if (r != NULL) {
        timeline_span(r, here, runs > here ? runs : here);
        say_row(r);
    }
    add_deeds(t, &s->command, DIARY_EXECUTE, 3, "all nodes", "execute");
    add_deeds(t, &s->command, DIARY_REPORT, 6, command, "report of the end");
}

/* ---- the launch ---- */

static int launch(const struct image_settings *s, struct cargo *c) {
    uint64_t ns;
    int r = cargo_make(c, "fresh", s->sizes.at[0], s->nop);
    diaries_lay(c);
    return r == 0 ? cargo_launch(c, "fresh", s->nop, s->tree, &ns) : r;
}

static int read_diaries(const struct cargo *c, struct story_of_launch *s) {
    s->command = diaries_read(c, DIARY_OF_COMMAND);
    for (uint32_t i = 0; i < c->nodes; i++) {
        struct notes n = diaries_read(c, i);
        uint64_t here = notes_last(&n, DIARY_COMMIT);
        bool first = s->first.count == 0 || here < notes_last(&s->first, DIARY_COMMIT);
        bool last = here != 0 && here >= notes_last(&s->last, DIARY_COMMIT);
        if (here != 0 && first) {
            notes_free(&s->first);
            s->first = diaries_read(c, i);
            s->first_node = i;
        }
        if (last) {
            notes_free(&s->last);
            s->last = n;
            s->last_node = i;
        } else {
            notes_free(&n);
        }
    }
    if (s->first.count > 0 && notes_last(&s->command, DIARY_REPORT) != 0)
        return 0;
    complain("bench", "the movers have kept no diary");
    return -EPROTO;
}

static int draw(const struct image_settings *s, const struct cargo *c,
                const struct story_of_launch *story) {
    char subtitle[96], size[UNITS_TEXT_MAX];
    struct timeline *t = calloc(1, sizeof *t);
    if (t == NULL)
        return -ENOMEM;
    units_format_size(s->sizes.at[0], size, sizeof size);
    snprintf(subtitle, sizeof subtitle, "%s to %" PRIu32 " nodes on this machine, then executed",
             size, c->nodes);
    t->title = "A launch with a program that is sent first";
    t->subtitle = subtitle;
    printf("%s: %s\n\n", t->title, subtitle);
    compose(t, story);
    FILE *out = fopen(s->timeline, "we");
    int r = out == NULL ? -errno : timeline_write(t, out);
    if (out != NULL && fclose(out) != 0 && r == 0)
        r = -EIO;
    timeline_fini(t);
    free(t);
    if (r < 0)
        complain("bench", "%s: %s", s->timeline, strerror(-r));
    return r;
}

int bench_timeline(const struct image_settings *s) {
    struct cargo c;
    struct story_of_launch story = {0};
    const char *const more[] = {"--launchers", s->launchers, NULL};
    int r = cargo_up(&c, s->command, (uint32_t)s->nodes.at[s->nodes.count - 1], true, more);
    if (r < 0)
        return r;
    r = launch(s, &c);
    if (r == 0)
        r = launch(s, &c); /* movers and launchers are there: that is what is shown */
    if (r == 0)
        r = read_diaries(&c, &story);
    if (r == 0)
        r = draw(s, &c, &story);
    notes_free(&story.command);
    notes_free(&story.first);
    notes_free(&story.last);
    cargo_down(&c);
    return r;
}
