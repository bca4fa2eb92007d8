/* SPDX-License-Identifier: MIT */
/* The tender of a cluster's hosts: see tender.h. */
#include "cli/tender.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/units.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/muster.h"
#include "cli/terminal.h"
#include "cli/turnout.h"
#include "client/berthing.h"
#include "client/hostsfile.h"
#include "client/keys.h"
#include "os/files.h"
#include "wire/row.h"

#define LOOK_NS      (2 * NS_PER_S)  /* the manager is asked who is there */
#define JOIN_NS      (15 * NS_PER_S) /* for a node that was started to be there */
#define PAUSE_MIN_NS (2 * NS_PER_S)
#define PAUSE_MAX_NS (60 * NS_PER_S)
#define COMMAND_NS   (60 * NS_PER_S) /* for a host to become a node, or to cease to be one */

/* Lives of a node in a second, at most: one that was brought up later has a higher count than any before. */
enum {
    LIVES_A_SECOND = 16,
    MISSED_MAX = 2,
    ENDS_MAX = 3,
    NOT_FOUND = 127,
    PROGRAMS = 2,
    SETTINGS_MAX = 1024
};

enum stage {
    STAGE_NONE,    /* nobody has the number */
    STAGE_WANTED,  /* to be brought up, when its time has come */
    STAGE_TRYING,  /* it is being brought up */
    STAGE_THERE,   /* it says that it is up */
    STAGE_LEAVING, /* to be ended */
    STAGE_ENDING,
    STAGE_DIRTY, /* only the helper is to be taken away */
    STAGE_SWEEPING
};

struct member {
    enum stage stage;
    char name[ROSTER_NAME_MAX];
    uint64_t at;     /* when to try again; when it came up */
    uint64_t pause;  /* before the next try */
    uint32_t ends;   /* tries to end it */
    bool seen;       /* the manager says that it is there */
    bool touched;    /* something of ours may be there */
    bool helped;     /* the helper of remote shells is there because of us */
    bool messy;      /* part of it may be */
    uint32_t order;  /* of the crew that was sent to it last; 0: none was */
    uint32_t missed; /* so often it was brought up, and the manager did not hear of it */
};

enum purpose_of_crew { CREW_BRINGS, CREW_ENDS, CREW_SWEEPS };

/* A tree of remote shells that is under way. */
struct crew_at_work {
    struct list at;
    struct tender *tender;
    struct muster *muster;
    enum purpose_of_crew purpose;
    uint32_t order; /* one crew after the other */
};

struct tender {
    const struct tender_config *config;
    struct contact contact;
    struct source signals, changes;
    struct list crews;
    struct member *members;
    struct turnout turnout;
    struct hosts hosts; /* as the file has it */
    char line[BERTHING_PATH_MAX + 32];
    char end_line[BERTHING_PATH_MAX + 300];
    char own[BERTHING_PATH_MAX + 32]; /* where programs are on hosts: of nobody else */
    char sweep[256];
    char *hosts_text;
    uint64_t look_at;
    uint32_t failures; /* of ending */
    uint32_t orders;   /* crews so far */
    bool asked;        /* the manager */
    bool changed;      /* files, perhaps */
    bool unsettled;    /* who is there, and who should be, is to be compared */
    bool ending, over; /* of the cluster; of us */
    bool said_ended;
    bool dirty; /* something is to be written down */
    bool alone; /* without a manager, only to end */
};

/* ---- what is written down ---- */

static void note(struct tender *t, uint32_t number, enum turnout_state state, const char *words) {
    struct turnout_host *h = &t->turnout.at[number];
    h->state = state;
    snprintf(h->name, sizeof h->name, "%s", t->members[number].name);
    snprintf(h->words, sizeof h->words, "%s", words);
    t->dirty = true;
}

static void write_berths(struct tender *t) {
    struct hosts left;
    char path[CLUSTER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/" TENDER_BERTHS, t->config->folder);
    int r = hosts_init(&left, t->hosts.capacity);
    for (uint32_t i = 0; i < t->hosts.capacity && r == 0; i++)
        if (t->members[i].touched || t->members[i].stage == STAGE_TRYING)
            hosts_add(&left, i, t->members[i].name, NULL);
    if (r == 0)
        r = hosts_write(&left, path);
    if (r < 0)
        fprintf(stderr, "storm: %s: %s\n", path, strerror(-r));
    hosts_free(&left);
}

static void write_down(struct tender *t) {
    if (!t->dirty)
        return;
    t->dirty = false;
    write_berths(t);
    int r = turnout_write(&t->turnout, t->config->folder);
    if (r < 0)
        fprintf(stderr, "storm: muster: %s\n", strerror(-r));
}

/* ---- what becomes of a host ---- */

static void postpone(struct tender *t, struct member *m) {
    m->stage = STAGE_WANTED;
    m->at = t->contact.loop.now + m->pause;
    m->pause = m->pause * 2 < PAUSE_MAX_NS ? m->pause * 2 : PAUSE_MAX_NS;
}

static void came_up(struct tender *t, uint32_t number) {
    struct member *m = &t->members[number];
    m->stage = STAGE_THERE;
    m->at = t->contact.loop.now;
    m->seen = false;
    m->touched = true;
    t->unsettled = true; /* it may not be wanted any more */
    note(t, number, TURNOUT_UP, "");
}

static void failed(struct tender *t, uint32_t number, const char *words) {
    note(t, number, TURNOUT_FAILED, words);
    t->unsettled = true;
    postpone(t, &t->members[number]);
}

/* It is free for another, who may wait already. */
static void has_left(struct tender *t, uint32_t number) {
    t->members[number].stage = STAGE_NONE;
    t->unsettled = true;
    t->dirty = true;
}

static void end_failed(struct tender *t, uint32_t number, int status, const char *words) {
    struct member *m = &t->members[number];
    if (status != MUSTER_LATE && ++m->ends < ENDS_MAX) {
        /* Others may have been in its way: they share a cache of helpers. */
        m->stage = STAGE_LEAVING;
        return;
    }
    note(t, number, TURNOUT_FAILED, words);
    t->failures++;
    if (t->alone)
        complain(m->name, "it could not be ended: %s", words);
    has_left(t, number);
}

/* ---- trees of remote shells ---- */

/* A crew may stay longer than those whom it was sent to: another may have the number by now, or another crew the host. */
static bool is_his(const struct crew_at_work *c, uint32_t number) {
    return c->tender->members[number].order == c->order;
}

static void on_sent(void *context, uint32_t number) {
    const struct crew_at_work *c = context;
    if (is_his(c, number))
        c->tender->members[number].helped = true;
}

static void on_said(void *context, uint32_t number, const char *words) {
    const struct crew_at_work *c = context;
    if (c->purpose == CREW_BRINGS && strcmp(words, "ok") == 0 && is_his(c, number) &&
        c->tender->members[number].stage == STAGE_TRYING)
        came_up(c->tender, number);
}

/* Where the node's program never came, or its folder is somebody else's, it cannot clean up, and the helper is all that there is. So it may be where we have
 * not waited for the end of what we had begun. */
static void end_over(struct tender *t, uint32_t number, int status, const char *words) {
    struct member *m = &t->members[number];
    bool none = status == NOT_FOUND || status == MUSTER_STRANGE;
    if (status != 0 && !none) {
        end_failed(t, number, status, words);
    } else if ((none && m->helped) || m->messy) {
        m->messy = false;
        m->stage = STAGE_DIRTY;
    } else {
        m->touched = false;
        note(t, number, TURNOUT_ENDED, "");
        has_left(t, number);
    }
}

static void bring_over(struct tender *t, uint32_t number, int status, const char *words) {
    struct member *m = &t->members[number];
    m->touched = m->touched || (status != MUSTER_NOT_REACHED && status != MUSTER_LATE);
    m->messy = m->messy || status == MUSTER_CANCELLED || status == MUSTER_LOST;
    if (m->stage == STAGE_TRYING)
        failed(t, number, status == 0 ? "it has ended again" : words);
    else if (m->stage == STAGE_THERE && t->config->stay)
        failed(t, number, "it is gone");
}

static void on_over(void *context, uint32_t number, int status, const char *words) {
    const struct crew_at_work *c = context;
    struct tender *t = c->tender;
    if (!is_his(c, number))
        return;
    if (c->purpose == CREW_BRINGS)
        bring_over(t, number, status, words);
    else if (c->purpose == CREW_ENDS)
        end_over(t, number, status, words);
    else
        end_over(t, number, 0, words); /* it was tried */
}

/* The text of a node's key, "" if links are open. False: it cannot be had. */
static bool find_key(const struct tender *t, uint32_t number, char out[KEYFILE_TEXT_MAX]) {
    const struct cluster *c = &t->contact.cluster;
    char why[256];
    struct keyfile key;
    out[0] = '\0';
    if (!c->sealed)
        return true;
    if (keys_issue_node(t->config->folder, c->nodes, number, &key, why) < 0) {
        fprintf(stderr, "storm-tender: %s\n", why);
        return false;
    }
    out[keyfile_write(&key, out)] = '\0';
    explicit_bzero(&key, sizeof key);
    return true;
}

static char *make_plan(const struct tender *t, uint32_t number, bool end) {
    const struct cluster *c = &t->contact.cluster;
    char key[KEYFILE_TEXT_MAX] = "";
    if (!end && !find_key(t, number, key))
        return NULL;
    uint64_t now = files_now_ns();
    struct berthing b = {
        .cluster = *c,
        .self = number,
        .boots =
            (uint32_t)((now > c->started_ns ? now - c->started_ns : 0) / NS_PER_S * LIVES_A_SECOND),
        .stay = t->config->stay,
        .system_cores = t->config->system_cores,
        .anew = t->members[number].missed >= MISSED_MAX,
        .end = end,
        .helped = t->members[number].helped,
        .hosts = bytes_from_str(end || t->hosts_text == NULL ? "" : t->hosts_text)};
    memcpy(b.called, t->members[number].name, sizeof b.called);
    memcpy(b.listen, t->config->listen, sizeof b.listen);
    memcpy(b.confine, t->config->confine, sizeof b.confine);
    b.cluster.watcher = 0; /* what is of this machine only */
    b.cluster.guarantee[0] = b.cluster.hook[0] = b.cluster.policy[0] = '\0';
    b.key = bytes_from_str(key);
    char *text = berthing_text(&b);
    explicit_bzero(key, sizeof key);
    return text;
}

/* Programs of the node, as they are here and there. */
static void name_programs(const struct tender *t, char text[PROGRAMS][2][CLUSTER_PATH_MAX + 32],
                          struct muster_file files[PROGRAMS]) {
    static const char *const names[PROGRAMS] = {"storm", "storm-pl"};
    for (int i = 0; i < PROGRAMS; i++) {
        snprintf(text[i][0], sizeof text[i][0], "%s/bin/%s", t->config->folder, names[i]);
        snprintf(text[i][1], sizeof text[i][1], "%s/bin/%s", t->contact.cluster.node_folder,
                 names[i]);
        files[i] = (struct muster_file){.from = text[i][0], .to = text[i][1]};
    }
}

static void close_crew(struct crew_at_work *c) {
    list_remove(&c->at);
    muster_free(c->muster);
    free(c);
}

/* A folder on hosts that must be nobody else's. The programs in it may be gone already when a node is to end. */
static const char *own_of(const struct tender *t, enum purpose_of_crew purpose) {
    return purpose == CREW_BRINGS ? t->own
           : purpose == CREW_ENDS ? t->contact.cluster.node_folder
                                  : NULL;
}

static struct crew_at_work *new_crew(struct tender *t, enum purpose_of_crew purpose) {
    char text[PROGRAMS][2][CLUSTER_PATH_MAX + 32];
    struct muster_file files[PROGRAMS];
    int error;
    struct crew_at_work *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (struct crew_at_work){.tender = t, .purpose = purpose, .order = ++t->orders};
    list_init(&c->at);
    name_programs(t, text, files);
    struct muster_config config = {.loop = &t->contact.loop,
                                   .reach = &t->config->reach,
                                   .shape = t->config->shape,
                                   .connect_ns = t->config->connect_ns,
                                   .command_ns =
                                       t->config->stay && purpose == CREW_BRINGS ? 0 : COMMAND_NS,
                                   .files = files,
                                   .file_count = purpose == CREW_BRINGS ? PROGRAMS : 0,
                                   .line = purpose == CREW_BRINGS ? t->line
                                           : purpose == CREW_ENDS ? t->end_line
                                                                  : t->sweep,
                                   .own = own_of(t, purpose),
                                   .context = c,
                                   .sent = on_sent,
                                   .said = on_said,
                                   .over = on_over};
    c->muster = muster_new(&config, &error);
    if (c->muster != NULL)
        return c;
    free(c);
    return NULL;
}

/* Crews that were told to stop may still have somebody at work, who leaves what nobody has seen yet. Those that stay with
 * their hosts go only when these are ended. */
static bool stopping(const struct tender *t) {
    if (!t->ending || t->config->stay)
        return false;
    LIST_EACH (at, &t->crews)
        if (CONTAINER_OF(at, struct crew_at_work, at)->purpose == CREW_BRINGS)
            return true;
    return false;
}

static bool is_due(const struct tender *t, const struct member *m, enum purpose_of_crew purpose) {
    if (purpose == CREW_BRINGS)
        return m->stage == STAGE_WANTED && !t->ending && m->at <= t->contact.loop.now;
    if (stopping(t))
        return false;
    return m->stage == (purpose == CREW_ENDS ? STAGE_LEAVING : STAGE_DIRTY);
}

/* How many there are, 0: nobody. */
static int fill_crew(struct tender *t, struct crew_at_work *c) {
    bool ends = c->purpose != CREW_BRINGS;
    int r = 0, count = 0;
    for (uint32_t i = 0; i < t->hosts.capacity && r == 0; i++) {
        struct member *m = &t->members[i];
        char *plan = is_due(t, m, c->purpose) ? make_plan(t, i, ends) : NULL;
        if (plan == NULL)
            continue;
        r = muster_add(c->muster, m->name, i, plan);
        m->order = c->order;
        m->stage++; /* it is under way */
        count++;
        note(t, i, TURNOUT_TRYING, "");
    }
    return r < 0 ? r : count;
}

/* Nothing comes of it now: of who is to be brought up, perhaps later; who is to be ended is for whoever comes after us. */
static void put_off(struct tender *t, enum purpose_of_crew purpose) {
    t->over = t->over || purpose != CREW_BRINGS;
    for (uint32_t i = 0; i < t->hosts.capacity; i++)
        if (is_due(t, &t->members[i], purpose))
            failed(t, i, "what it needs cannot be had here; the log says what");
}

static bool any_due(const struct tender *t, enum purpose_of_crew purpose) {
    for (uint32_t i = 0; i < t->hosts.capacity; i++)
        if (is_due(t, &t->members[i], purpose))
            return true;
    return false;
}

/* All for whom it is time, in one tree. */
static void send_crew(struct tender *t, enum purpose_of_crew purpose) {
    struct crew_at_work *c = any_due(t, purpose) ? new_crew(t, purpose) : NULL;
    int count = c != NULL ? fill_crew(t, c) : 0;
    int r = count > 0 ? muster_begin(c->muster) : count;
    if (count > 0 && r == 0)
        list_push_back(&t->crews, &c->at);
    else if (c != NULL)
        close_crew(c);
    if (r < 0) {
        fprintf(stderr, "storm: hosts cannot be reached: %s\n", strerror(-r));
        t->over = true; /* the watcher starts another */
    }
    if (any_due(t, purpose))
        put_off(t, purpose);
}

static void settle_crews(struct tender *t) {
    LIST_EACH_SAFE (at, &t->crews) {
        struct crew_at_work *c = CONTAINER_OF(at, struct crew_at_work, at);
        muster_settle(c->muster);
        if (muster_over(c->muster))
            close_crew(c);
    }
}

/* ---- who belongs to the cluster ---- */

static void leave(struct tender *t, uint32_t number) {
    struct member *m = &t->members[number];
    m->stage = STAGE_LEAVING;
    m->ends = 0;
    if (!m->touched) {
        note(t, number, TURNOUT_ENDED, "");
        has_left(t, number);
    }
}

/* Where it could not be ended under another number that is done when it comes again: see berth.c. */
static void forget_former(struct tender *t, const char *name) {
    for (uint32_t i = 0; i < t->hosts.capacity; i++)
        if (t->members[i].stage == STAGE_NONE && strcmp(t->members[i].name, name) == 0) {
            t->members[i].touched = false;
            t->turnout.at[i].state = TURNOUT_NONE;
        }
}

static void compare_one(struct tender *t, uint32_t number) {
    struct member *m = &t->members[number];
    const char *name = t->ending ? "" : t->hosts.at[number].name;
    bool same = strcmp(m->name, name) == 0;
    if (m->stage == STAGE_NONE && *name != '\0') {
        forget_former(t, name);
        *m = (struct member){.stage = STAGE_WANTED, .pause = PAUSE_MIN_NS};
        snprintf(m->name, sizeof m->name, "%s", name);
    } else if ((m->stage == STAGE_WANTED || m->stage == STAGE_THERE) && !same) {
        leave(t, number);
    }
}

/* Those that could not be ended when they left get another chance. */
static void recall_forsaken(struct tender *t) {
    for (uint32_t i = 0; i < t->hosts.capacity; i++)
        if (t->members[i].stage == STAGE_NONE && t->members[i].touched)
            t->members[i].stage = STAGE_WANTED;
}

static void read_hosts(struct tender *t) {
    char path[CLUSTER_PATH_MAX + 16];
    struct cluster_trouble trouble = {""};
    struct hosts fresh;
    uint64_t version = turnout_version(t->config->folder); /* not later than what is read */
    int r = hosts_path(t->config->folder, path, sizeof path);
    r = r < 0 ? r : hosts_read(&fresh, t->contact.cluster.nodes, path, &trouble);
    if (r < 0) {
        fprintf(stderr, "storm: hosts: %s\n",
                *trouble.words != '\0' ? trouble.words : strerror(-r));
        return;
    }
    hosts_free(&t->hosts);
    t->hosts = fresh;
    free(t->hosts_text);
    t->hosts_text = NULL;
    cluster_text(path, &t->hosts_text, &trouble);
    t->turnout.seen = version;
    t->dirty = true;
}

/* Where something may be left of a former tender. */
static void recall(struct tender *t) {
    char path[CLUSTER_PATH_MAX + 16];
    struct cluster_trouble trouble;
    struct hosts known;
    snprintf(path, sizeof path, "%s/" TENDER_BERTHS, t->config->folder);
    if (hosts_read(&known, t->contact.cluster.nodes, path, &trouble) < 0)
        return;
    for (uint32_t i = 0; i < known.capacity; i++) {
        if (known.at[i].name[0] == '\0')
            continue;
        t->members[i] =
            (struct member){.stage = STAGE_WANTED, .pause = PAUSE_MIN_NS, .touched = true};
        snprintf(t->members[i].name, sizeof t->members[i].name, "%s", known.at[i].name);
    }
    hosts_free(&known);
}

/* Nobody is brought up any more. Those who stay as long as their remote shell does have to be ended well. */
static void end_crews(struct tender *t) {
    LIST_EACH (at, &t->crews) {
        struct crew_at_work *c = CONTAINER_OF(at, struct crew_at_work, at);
        if (c->purpose == CREW_BRINGS && !t->config->stay)
            muster_stop(c->muster);
    }
}

static void read_files(struct tender *t) {
    char path[CLUSTER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/" TENDER_ENDING, t->config->folder);
    t->changed = false;
    t->unsettled = true;
    if (!t->ending && (t->alone || access(path, F_OK) == 0)) {
        t->ending = true;
        end_crews(t);
        recall_forsaken(t);
    }
    if (!t->alone)
        read_hosts(t);
}

static void compare(struct tender *t) {
    if (t->changed)
        read_files(t);
    t->unsettled = false;
    for (uint32_t i = 0; i < t->hosts.capacity; i++)
        compare_one(t, i);
}

/* ---- who is there, as the manager has it ---- */

/* A pause is over for who is there; who is not is brought up again, if it had time enough to come. */
static void judge(struct tender *t) {
    uint64_t now = t->contact.loop.now;
    for (uint32_t i = 0; i < t->hosts.capacity; i++) {
        struct member *m = &t->members[i];
        if (m->stage != STAGE_THERE)
            continue;
        if (m->seen) {
            m->pause = PAUSE_MIN_NS;
            m->missed = 0;
            m->at = 0; /* from now on it is missed at once */
        } else if (m->at == 0 || now - m->at > JOIN_NS) {
            note(
                t, i, TURNOUT_FAILED,
                "it runs, but the manager does not hear of it; can it reach the manager's address and port?");
            m->missed++;
            postpone(t, m);
        }
    }
}

static void ask(struct tender *t, uint32_t from);

static void on_rows(void *context, const struct message_rows *r) {
    struct tender *t = context;
    struct node_row row;
    size_t at = 0;
    uint32_t next = 0;
    t->asked = false;
    while (node_row_next(r->rows, &at, &row) == 1) {
        next = row.node + 1;
        if (row.node < t->hosts.capacity)
            t->members[row.node].seen = row.state != NODE_DOWN;
    }
    if (!r->last && next > 0)
        ask(t, next);
    else
        judge(t);
}

static void ask(struct tender *t, uint32_t from) {
    struct message_ask m = {.subject = SUBJECT_NODES, .job = from};
    t->asked = session_ask(t->contact.session, &m, on_rows, t) == 0;
}

static void look(struct tender *t) {
    uint64_t now = t->contact.loop.now;
    if (t->contact.session == NULL || t->ending)
        return;
    if (now >= t->look_at && !t->asked) {
        for (uint32_t i = 0; i < t->hosts.capacity; i++)
            t->members[i].seen = false;
        t->look_at = now + LOOK_NS;
        ask(t, 0);
    }
    loop_wake_at(&t->contact.loop, t->look_at);
}

/* ---- what happens ---- */

static void on_change(struct source *s, uint32_t events) {
    struct tender *t = CONTAINER_OF(s, struct tender, changes);
    char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t len;
    (void)events;
    while ((len = read(s->fd, buffer, sizeof buffer)) > 0)
        for (char *at = buffer; at < buffer + len;) {
            const struct inotify_event *e = (const struct inotify_event *)at;
            t->changed = t->changed || (e->mask & IN_Q_OVERFLOW) != 0 ||
                         (e->len > 0 &&
                          (strcmp(e->name, "hosts") == 0 || strcmp(e->name, TENDER_ENDING) == 0));
            at += sizeof *e + e->len;
        }
}

static void on_signal(struct source *s, uint32_t events) {
    struct tender *t = CONTAINER_OF(s, struct tender, signals);
    struct signalfd_siginfo info;
    int status;
    (void)events;
    while (read(s->fd, &info, sizeof info) == sizeof info)
        t->over = t->over || info.ssi_signo != SIGCHLD;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        LIST_EACH (at, &t->crews)
            muster_reaped(CONTAINER_OF(at, struct crew_at_work, at)->muster, pid, status);
}

static int watch_signals(struct tender *t) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : loop_adopt(&t->contact.loop, &t->signals, fd, on_signal, EPOLLIN);
}

static int watch_folder(struct tender *t) {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (inotify_add_watch(fd, t->config->folder, IN_MOVED_TO | IN_CREATE) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return loop_adopt(&t->contact.loop, &t->changes, fd, on_change, EPOLLIN);
}

static void wake_for_tries(struct tender *t) {
    for (uint32_t i = 0; i < t->hosts.capacity; i++)
        if (t->members[i].stage == STAGE_WANTED && !t->ending)
            loop_wake_at(&t->contact.loop, t->members[i].at);
}

static uint32_t count_members(const struct tender *t) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->hosts.capacity; i++)
        count += t->members[i].stage != STAGE_NONE;
    return count;
}

/* Whoever has asked for the end waits for this. */
static void say_ended(struct tender *t) {
    char path[CLUSTER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/" TENDER_ENDED, t->config->folder);
    t->said_ended = true;
    int r = files_replace(path, bytes_of(NULL, 0));
    if (r < 0)
        fprintf(stderr, "storm: %s: %s\n", path, strerror(-r));
}

static void turn(struct tender *t) {
    do {
        if (t->changed || t->unsettled)
            compare(t);
        for (int i = CREW_BRINGS; i <= CREW_SWEEPS; i++)
            send_crew(t, (enum purpose_of_crew)i);
        settle_crews(t);
    } while (t->unsettled);
    write_down(t);
    look(t);
    wake_for_tries(t);
    if (t->ending && !t->said_ended && !t->alone && count_members(t) == 0 && !stopping(t))
        say_ended(t);
    if (t->alone && count_members(t) == 0 && list_empty(&t->crews))
        t->over = true;
    else if (t->contact.session != NULL)
        session_turn(t->contact.session);
    else
        loop_turn(&t->contact.loop, -1);
}

static void show_progress(const struct tender *t) {
    char words[64];
    uint32_t left = count_members(t);
    snprintf(words, sizeof words, "%" PRIu32 " host%s ending", left, left == 1 ? " is" : "s are");
    terminal_progress(words);
}

/* ---- its life ---- */

static int begin(struct tender *t) {
    uint32_t capacity = t->contact.cluster.nodes;
    list_init(&t->crews);
    t->signals.fd = t->changes.fd = -1;
    t->members = calloc(capacity, sizeof *t->members);
    int r = t->members == NULL ? -ENOMEM : turnout_init(&t->turnout, capacity);
    r = r < 0 ? r : hosts_init(&t->hosts, capacity);
    r = r < 0 ? r : watch_signals(t);
    r = r < 0 || t->alone ? r : watch_folder(t);
    if (r < 0)
        return r;
    snprintf(t->line, sizeof t->line, "%s/bin/storm berth", t->contact.cluster.node_folder);
    /* Programs that came in part cannot end themselves; whether the folder is ours is looked at before. If there is more in it, a node
     * was there, and perhaps still is. */
    snprintf(
        t->end_line, sizeof t->end_line,
        "d=%s; test -x $d/bin/storm && exec $d/bin/storm berth; rm -rf $d/bin; rmdir $d "
        "2>/dev/null; test -e $d || exit %d; echo somebody has removed the programs in $d/bin: "
        "end what is called storm there, and remove $d >&2; exit 1",
        t->contact.cluster.node_folder, NOT_FOUND);
    snprintf(t->own, sizeof t->own, "%s/bin", t->contact.cluster.node_folder);
    snprintf(t->sweep, sizeof t->sweep,
             "rm -f ~/.cache/storm/hop-%s; rmdir ~/.cache/storm ~/.cache 2>/dev/null; true",
             t->config->reach.helper.digest);
    recall(t);
    t->changed = true;
    return 0;
}

static void finish(struct tender *t) {
    LIST_EACH_SAFE (at, &t->crews)
        close_crew(CONTAINER_OF(at, struct crew_at_work, at));
    loop_close(&t->contact.loop, &t->signals);
    loop_close(&t->contact.loop, &t->changes);
    turnout_free(&t->turnout);
    hosts_free(&t->hosts);
    free(t->hosts_text);
    free(t->members);
}

static void on_lost(void *context, enum session_loss why) {
    struct tender *t = context;
    (void)why;
    t->over = true;
}

int tender_run(const struct tender_config *c) {
    struct tender t = {.config = c};
    struct cluster_trouble trouble;
    struct session_config callbacks = {
        .context = &t, .patience_ns = UINT64_MAX / 4, .lost = on_lost};
    if (cluster_load(&t.contact.cluster, c->folder, &trouble) < 0 ||
        contact_begin(&t.contact, &callbacks) != 0)
        return STATUS_STORM;
    int r = begin(&t);
    if (r < 0)
        fprintf(stderr, "storm: the tender: %s\n", strerror(-r));
    while (r == 0 && !t.over)
        turn(&t);
    write_down(&t);
    finish(&t);
    contact_close(&t.contact);
    cluster_free(&t.contact.cluster);
    return r < 0 ? STATUS_STORM : 0;
}

int tender_end(const struct tender_config *c, const struct cluster *cluster) {
    struct tender t = {.config = c, .alone = true};
    t.contact.cluster = *cluster;
    int r = loop_init(&t.contact.loop);
    r = r < 0 ? r : begin(&t);
    while (r == 0 && !t.over) {
        turn(&t);
        show_progress(&t);
    }
    terminal_progress(NULL);
    uint32_t left = r < 0 ? 0 : count_members(&t); /* we were told not to wait for them */
    if (left > 0)
        complain(cluster->name, "%" PRIu32 " host%s not waited for; storm down tries again", left,
                 left == 1 ? " was" : "s were");
    if (r < 0)
        complain(cluster->name, "its hosts cannot be ended: %s", strerror(-r));
    else
        write_down(&t);
    finish(&t);
    loop_fini(&t.contact.loop);
    return r < 0 ? 1 : (int)(t.failures + left);
}

/* ---- its settings ---- */

int tender_save(const struct tender_config *c, const struct cluster *cluster) {
    char path[CLUSTER_PATH_MAX + 16], text[REACH_CONNECTOR_MAX + SETTINGS_MAX];
    snprintf(path, sizeof path, "%s/" TENDER_WORDS, c->folder);
    int head = snprintf(text, SETTINGS_MAX, "%d %d %" PRIu64 " %s %s %" PRIu32 " %s %s\n",
                        (int)c->shape, c->stay, c->connect_ns, c->confine, c->listen,
                        cluster->nodes, cluster->name, cluster->node_folder);
    memcpy(text + head, c->reach.words, c->reach.connector.len); /* words end in zeros */
    return files_replace(path, bytes_of(text, (size_t)head + c->reach.connector.len));
}

static bool read_settings(const char *line, struct tender_config *c, struct cluster *cluster) {
    int shape, stay;
    _Static_assert(CLUSTER_NAME_MAX == 48 && CLUSTER_FOLDER_MAX == 480, "the widths below");
    if (sscanf(line, "%d %d %" SCNu64 " %15s %63s %" SCNu32 " %47s %479s", &shape, &stay,
               &c->connect_ns, c->confine, c->listen, &cluster->nodes, cluster->name,
               cluster->node_folder) != 8 ||
        shape < 0 || shape >= HOP_SHAPES)
        return false;
    c->shape = (enum hop_shape)shape;
    c->stay = stay != 0;
    return cluster->nodes > 0 && cluster->nodes <= CLUSTER_NODES_MAX;
}

int tender_load(struct tender_config *ret, const char *folder, struct cluster *ret_cluster) {
    char path[CLUSTER_PATH_MAX + 16], line[SETTINGS_MAX];
    snprintf(path, sizeof path, "%s/" TENDER_WORDS, folder);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return -errno;
    *ret = (struct tender_config){.folder = folder};
    *ret_cluster =
        (struct cluster){.pes = 1, .tree = "flat", .prefix = "n", .port_first = 1, .port_last = 1};
    int r = address_parse(&ret_cluster->manager, "tcp:127.0.0.1:1"); /* nobody will call it */
    bool fine =
        r == 0 && fgets(line, sizeof line, f) != NULL && read_settings(line, ret, ret_cluster);
    size_t len = fine ? fread(ret->reach.words, 1, sizeof ret->reach.words, f) : 0;
    fclose(f);
    if (!fine || len == 0 || ret->reach.words[len - 1] != '\0')
        return -EBADMSG;
    ret->reach.connector = bytes_of(ret->reach.words, len);
    return 0;
}
