/* SPDX-License-Identifier: MIT */
/* How hosts are reached: see reach.h. */
#include "cli/reach.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "cli/complain.h"
#include "os/companion.h"
#include "os/self.h"

#define CONNECT_NS (10 * NS_PER_S)
#define LATE_NS    (2 * NS_PER_S) /* by then most hosts have answered: who has not holds nobody up */
#define BEAT_NS    (5 * NS_PER_S)
#define SILENT_NS  (20 * NS_PER_S)

/* From here on what a hop sends takes longer than to reach another: it gets two children, not as many as it can. */
#define LARGE_BYTES (1024 * 1024)

enum { AT_ONCE = 32, WORDS_MAX = 48 };

/* ssh must never ask: there would be as many questions as hosts. */
int reach_connector(struct reach *r, const char *who, const char *given, const char *user) {
    char line[REACH_CONNECTOR_MAX], *words[WORDS_MAX + 1];
    size_t len = 0;
    given = given != NULL ? given : getenv("STORM_CONNECTOR");
    int n = snprintf(line, sizeof line, "%s%s%s", given != NULL ? given : "ssh -x -oBatchMode=yes",
                     given == NULL && user != NULL ? " -l " : "",
                     given == NULL && user != NULL ? user : "");
    if (given != NULL && user != NULL)
        return complain(who, "--user is for ssh; say it in the connector");
    int count = n < (int)sizeof line ? words_split(line, words, WORDS_MAX) : -E2BIG;
    if (count <= 0)
        return complain(who, "the connector \"%s\" %s", given != NULL ? given : "",
                        count == -EINVAL ? "has a quote that is not closed"
                        : count == 0     ? "has no words"
                                         : "is too long");
    for (int i = 0; i < count; i++) {
        size_t word = strlen(words[i]) + 1;
        memcpy(r->words + len, words[i], word);
        len += word;
    }
    r->connector = bytes_of(r->words, len);
    return 0;
}

int reach_helper(struct reach *r, const char *who) {
    char path[PATH_MAX];
    int error = companion_find("storm-hop", path, sizeof path);
    if (error == 0)
        error = self_helper_from(path, &r->helper);
    if (error == 0)
        return 0;
    complain(who, "the helper storm-hop is not to be found beside storm: %s", strerror(-error));
    return STATUS_STORM;
}

static uint64_t files_bytes(const struct task *t) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t->put_count; i++)
        sum += t->put[i].bytes;
    return sum;
}

void reach_plan(struct task *t, const struct reach_wish *w) {
    struct hop_config *h = &t->hop;
    h->hosts = w->hosts;
    h->shape = w->shape;
    h->children = w->hosts < REACH_CHILDREN_MAX ? w->hosts : REACH_CHILDREN_MAX;
    h->fanout = w->fanout != 0                                          ? w->fanout
                : w->shape == HOP_KARY || files_bytes(t) >= LARGE_BYTES ? 2
                                                                        : 0;
    h->at_once = w->at_once != 0 ? w->at_once : w->shape == HOP_BINOMIAL ? 1 : AT_ONCE;
    h->connect_ns = w->connect_ns != 0 ? w->connect_ns : CONNECT_NS;
    h->late_ns = LATE_NS < h->connect_ns ? LATE_NS : h->connect_ns;
    h->silent_ns = SILENT_NS;
    t->beat_ns = BEAT_NS;
}

/* Hosts behind one switch stand together, so that a part of them is mostly behind one. */
int reach_begin(struct limb *l, const struct roll *roll) {
    int r = 0;
    for (uint32_t crate = 0; crate <= roll->switch_count; crate++)
        for (uint32_t i = 0; i < roll->count && r == 0; i++)
            if (roll->crates[i] == crate)
                r = limb_take(l, &(struct task_host){.host = i,
                                                     .crate = (uint16_t)crate,
                                                     .name = bytes_from_str(roll->names[i])});
    if (r == 0)
        limb_share(l);
    return r;
}
