/* SPDX-License-Identifier: MIT */
/* How a command reaches its cluster: see contact.h. */
#include "cli/contact.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/options.h"
#include "os/release.h"
#include "wire/header.h"

static int say_none(const char *name) {
    if (strcmp(name, "local") == 0)
        complain(NULL, "no cluster `local` runs here; type: storm up --local 4");
    else
        complain(NULL, "no cluster `%s` runs here; type: storm up --cluster %s --local 4", name,
                 name);
    return STATUS_STORM;
}

int contact_find(struct cluster *ret, const char *asked) {
    char folder[CLUSTER_PATH_MAX];
    struct cluster_trouble trouble;
    const char *name = cluster_pick(asked);
    int r = cluster_folder(name, folder, sizeof folder);
    if (r == -EINVAL) {
        complain(name, "that is no name of a cluster; letters, digits, dots and dashes will do");
        return STATUS_STORM;
    }
    if (r < 0) {
        complain("STORM_HOME", "%s; set it to a folder of your own", strerror(-r));
        return STATUS_STORM;
    }
    r = cluster_load(ret, folder, &trouble);
    if (r == -ENOENT || r == -ENOTDIR)
        return say_none(name);
    if (r < 0) {
        const char *why = trouble.words[0] != '\0' ? trouble.words : strerror(-r);
        fprintf(stderr, "storm: %s/cluster: %s; type: storm down, and storm up again\n", folder,
                why);
        return STATUS_STORM;
    }
    return 0;
}

int contact_other(const char *name, const struct session_other *other, const char *what) {
    char theirs[RELEASE_TEXT_MAX];
    complain(name,
             "the cluster runs STORM %s (protocol %" PRIu32
             "), this command is %s (protocol %d); %s",
             release_text(other->release, theirs), other->protocol, release_version, HEADER_VERSION,
             what);
    return STATUS_STORM;
}

int contact_lost(const struct contact *c, enum session_loss why) {
    struct session_other other;
    if (why == SESSION_NOBODY)
        return say_none(c->cluster.name);
    if (why == SESSION_OTHER && session_other(c->session, &other))
        return contact_other(c->cluster.name, &other,
                             "use the cluster's own, or bring it up again");
    if (why == SESSION_STRANGER) {
        complain(NULL,
                 "the manager of cluster `%s` does not know our key; get one: storm login HOST",
                 c->cluster.name);
        return STATUS_STORM;
    }
    complain(NULL, "the manager of cluster `%s` does not answer; see: storm doctor",
             c->cluster.name);
    return STATUS_STORM;
}

static void on_lost(void *context, enum session_loss why) {
    struct contact *c = context;
    c->lost = true;
    contact_lost(c, why);
}

int contact_begin(struct contact *c, const struct session_config *callbacks) {
    struct session_config config = *callbacks;
    int r = loop_init(&c->loop);
    if (r < 0) {
        complain(NULL, "%s; close some files", strerror(-r));
        return STATUS_STORM;
    }
    c->found = false;
    config.loop = &c->loop;
    config.cluster = &c->cluster;
    if (config.lost == NULL) {
        config.lost = on_lost;
        config.context = c;
    }
    c->session = session_new(&config);
    if (c->session != NULL)
        return 0;
    complain(NULL, "%s; close some files", strerror(errno));
    loop_fini(&c->loop);
    return STATUS_STORM;
}

int contact_open(struct contact *c, const char *name, const struct session_config *callbacks) {
    c->lost = false;
    int r = contact_find(&c->cluster, name);
    if (r != 0)
        return r;
    r = contact_begin(c, callbacks);
    if (r != 0)
        cluster_free(&c->cluster);
    c->found = r == 0;
    return r;
}

void contact_close(struct contact *c) {
    session_flush(c->session);
    session_free(c->session);
    loop_fini(&c->loop);
    if (c->found)
        cluster_free(&c->cluster);
}

void contact_meet(struct contact *c, const struct nodeset *nodes) {
    char folder[CLUSTER_PATH_MAX];
    struct cluster_trouble trouble;
    bool all = true;
    if (c->cluster.hosts == NULL || nodes == NULL)
        return;
    NODESET_EACH (n, nodes)
        all = all && roster_taken(c->cluster.hosts, n);
    if (!all && cluster_folder(c->cluster.name, folder, sizeof folder) == 0)
        (void)cluster_load_hosts(&c->cluster, folder, &trouble); /* else numbers will do */
}

enum { ANSWER_SHOWN = 640 };

int contact_refused(const char *what, const struct message_answer *a) {
    int len = a->text.len > ANSWER_SHOWN ? ANSWER_SHOWN : (int)a->text.len;
    const char *text = (const char *)a->text.at;
    if (len > 0)
        complain(what, "%.*s", len, text);
    else if (a->code == ANSWER_UNKNOWN)
        complain(what, "there is no such job; see: storm ps");
    else if (a->code == ANSWER_FULL)
        complain(what, "the cluster takes no more now; try again later");
    else
        complain(what, "refused");
    return STATUS_STORM;
}

void contact_answered(void *answer, const struct message_answer *a) {
    struct contact_answer *ret = answer;
    size_t len = a->text.len < sizeof ret->text - 1 ? a->text.len : sizeof ret->text - 1;
    *ret = (struct contact_answer){.here = true, .code = a->code, .job = a->job, .count = a->count};
    if (len > 0)
        memcpy(ret->text, a->text.at, len);
}

/* Waits for what was asked, if it could be. */
static int await_answer(struct contact *c, int r, const struct contact_answer *ret) {
    if (r < 0) {
        complain(NULL, "%s; ask for less at a time", strerror(-r));
        return STATUS_STORM;
    }
    while (!ret->here && !c->lost)
        session_turn(c->session);
    return ret->here ? 0 : STATUS_STORM;
}

int contact_act(struct contact *c, const struct message_act *m, struct contact_answer *ret) {
    *ret = (struct contact_answer){0};
    return await_answer(c, session_act(c->session, m, contact_answered, ret), ret);
}

int contact_submit(struct contact *c, const struct message_submit *m, struct contact_answer *ret) {
    *ret = (struct contact_answer){0};
    return await_answer(c, session_submit(c->session, m, contact_answered, ret), ret);
}

int contact_reserve(struct contact *c, const struct message_reserve *m,
                    struct contact_answer *ret) {
    *ret = (struct contact_answer){0};
    return await_answer(c, session_reserve(c->session, m, contact_answered, ret), ret);
}

static void take_rows(void *context, const struct message_rows *r) {
    struct contact_rows *rows = context;
    uint8_t *more = realloc(rows->at, rows->len + r->rows.len + 1);
    if (more == NULL) {
        rows->error = -ENOMEM;
    } else {
        rows->at = more;
        if (r->rows.len > 0)
            memcpy(rows->at + rows->len, r->rows.at, r->rows.len);
        rows->len += r->rows.len;
    }
    if (r->wrong.len > 0) {
        complain(NULL, "%.*s", (int)r->wrong.len, (const char *)r->wrong.at);
        rows->refused = true;
    }
    rows->total = r->total;
    rows->last = r->last;
    rows->here = true;
}

int contact_ask(struct contact *c, const struct message_ask *m, struct contact_rows *ret) {
    ret->here = false;
    int r = session_ask(c->session, m, take_rows, ret);
    while (r == 0 && !ret->here && !c->lost)
        session_turn(c->session);
    r = r == 0 ? ret->error : r;
    if (r < 0)
        complain(NULL, "%s", strerror(-r));
    return ret->here && !ret->refused && r == 0 ? 0 : STATUS_STORM;
}

int contact_job(const char *command, const char *text, uint32_t *ret) {
    uint64_t number;
    if (!options_number(text, &number) || number == 0 || number > UINT32_MAX)
        return complain(command, "\"%s\" is no number of a job; see: storm ps", text);
    *ret = (uint32_t)number;
    return 0;
}
