/* SPDX-License-Identifier: MIT */
/* A hop of a tree of remote shells: see limb.h. */
#include "os/limb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/units.h"
#include "os/gleaner.h"
#include "os/nest.h"

enum {
    KIB_SHIFT = 10,
    LOST_WORDS_MAX = SHELL_WORDS_MAX + 300,
    FEED_BYTES = 256 * 1024, /* of files that wait for one child */
    PIECE_BYTES = 32 * 1024,
    GLEANED_AT_ONCE = 64 /* frames of files */
};
#define READS_NO_MORE \
    (UINT64_MAX - 1) /* as bytes taken: whatever comes. UINT64_MAX: nothing was sent yet */

struct limb {
    struct limb_config config;
    struct hop hop;
    void *books;
    char **names;               /* of hosts that are ours, by number */
    struct shell **shells;      /* by child */
    uint64_t *taken;            /* by child: how much input those behind it have */
    struct parcels_mark *marks; /* by child: how much of the files it has */
    struct parcels own_parcels;
    struct parcels *parcels;
    struct gleaner *gleaner; /* the command has ended, files are on their way up */
    struct list ended;       /* shells, to be freed */
    uint32_t alive;          /* shells that are not */
    struct shell_events shell_events;
    struct tool tool;
    struct tool_events tool_events;
    uint64_t tool_taken;
    uint64_t tool_until; /* 0: it may take any time */
    uint64_t beat_at;
    uint32_t told_taken;
    uint32_t signal;     /* that all commands got; 0: none */
    uint64_t settled_at; /* the turn before */
    bool late;           /* the command has taken too long */
    bool started;        /* the command, or it never will be */
    bool host_over;      /* all of this host was told */
    bool released;       /* no more hosts will come */
    bool hushed, stopped, idle;
    char lost[LOST_WORDS_MAX];     /* why a child was lost, the last one */
    uint8_t gifts[FRAME_BODY_MAX]; /* a frame HOSTS that is being written, for this child: */
    size_t gifts_len;
    uint32_t gifts_child;
};

static void pump(struct limb *l);

static void up(struct limb *l, struct frame f) {
    l->config.up(l->config.context, &f);
}

/* ---- Children ---------------------------------------------------------------------------------- */

static void give_task(struct limb *l, struct shell *s) {
    uint8_t body[FRAME_BODY_MAX];
    struct task t = *l->config.task;
    t.self = l->hop.children[s->child].host;
    t.name = bytes_from_str(l->names[t.self]);
    long n = task_write(&t, room_of(body, sizeof body));
    ASSERT(n > 0); /* the root has looked whether it fits, with the longest of names */
    shell_say(s, &(struct frame){.kind = FRAME_TASK, .body = bytes_of(body, (size_t)n)});
}

static void on_greeted(void *context, struct shell *s) {
    struct limb *l = context;
    uint32_t host = l->hop.children[s->child].host;
    hop_greeted(&l->hop, s->child, l->config.loop->now);
    l->marks[s->child] = (struct parcels_mark){.file = 0};
    up(l, (struct frame){.kind = FRAME_READY, .host = host, .flag = s->sent});
    give_task(l, s);
    pump(l);
}

/* A child could not reach a host. */
static bool take_back(struct limb *l, uint32_t child, const struct frame *f) {
    bool tell;
    if (!hop_returned(&l->hop, child, f->host, (enum hop_why)f->flag, &tell))
        return false;
    if (tell)
        up(l, *f);
    return true;
}

static bool is_behind(const struct limb *l, uint32_t child, uint32_t host) {
    return host < l->hop.config.hosts && l->hop.hosts[host].child == child &&
           l->hop.hosts[host].standing == HOP_REACHED;
}

static bool on_heard(void *context, struct shell *s, const struct frame *f) {
    struct limb *l = context;
    bool fine = true;
    hop_heard(&l->hop, s->child, l->config.loop->now);
    switch (f->kind) {
    case FRAME_READY:
        fine = hop_reached(&l->hop, s->child, f->host);
        break;
    case FRAME_OVER:
    case FRAME_LOST:
        fine = hop_over(&l->hop, s->child, f->host);
        break;
    case FRAME_OUTPUT:
    case FRAME_FETCHED:
        fine = is_behind(l, s->child, f->host);
        break;
    case FRAME_RETURN:
        fine = take_back(l, s->child, f);
        pump(l);
        return fine;
    case FRAME_IDLE:
        hop_idle(&l->hop, s->child);
        pump(l);
        return true;
    case FRAME_TAKEN:
        l->taken[s->child] =
            f->number == UINT32_MAX ? READS_NO_MORE : (uint64_t)f->number << KIB_SHIFT;
        return true;
    default:
        return true;
    }
    if (fine)
        up(l, *f);
    return fine;
}

static void tell_return(struct limb *l, uint32_t host, enum hop_why why, const char *words) {
    up(l, (struct frame){.kind = FRAME_RETURN,
                         .host = host,
                         .flag = (uint8_t)why,
                         .body = bytes_from_str(words)});
}

static void on_ended(void *context, struct shell *s) {
    struct limb *l = context;
    uint32_t host = l->hop.children[s->child].host;
    l->shells[s->child] = NULL;
    l->taken[s->child] = UINT64_MAX;
    l->alive--;
    list_push_back(&l->ended, &s->at);
    if (l->gifts_child == s->child)
        l->gifts_len = 0;
    snprintf(l->lost, sizeof l->lost, "%s%s%s", l->names[host], s->words[0] != '\0' ? ": " : "",
             s->words);
    if (hop_gone(&l->hop, s->child))
        tell_return(l, host, s->why, s->words);
    pump(l);
}

/* ---- What hop_next wants ----------------------------------------------------------------------- */

static void connect_to(struct limb *l, struct hop_deed d) {
    int error;
    struct shell *s =
        shell_new(l->config.loop, &l->shell_events, l->config.helper, l->config.task->connector,
                  bytes_from_str(l->names[d.host]), &error);
    if (s == NULL) {
        char words[SHELL_WORDS_MAX];
        snprintf(words, sizeof words, "cannot start %s: %s",
                 (const char *)l->config.task->connector.at, strerror(-error));
        hop_gone(&l->hop, d.child);
        tell_return(l, d.host, HOP_REFUSED, words);
        return;
    }
    s->child = d.child;
    l->shells[d.child] = s;
    l->taken[d.child] = UINT64_MAX;
    l->alive++;
}

static void send_gifts(struct limb *l) {
    if (l->gifts_len > 0)
        shell_say(l->shells[l->gifts_child],
                  &(struct frame){.kind = FRAME_HOSTS, .body = bytes_of(l->gifts, l->gifts_len)});
    l->gifts_len = 0;
}

static void give(struct limb *l, struct hop_deed d) {
    struct task_host h = {.host = d.host,
                          .crate = l->hop.hosts[d.host].crate,
                          .name = bytes_from_str(l->names[d.host])};
    if (l->gifts_child != d.child)
        send_gifts(l);
    l->gifts_child = d.child;
    struct room room = {.at = l->gifts + l->gifts_len, .len = sizeof l->gifts - l->gifts_len};
    long n = task_host_write(&h, room);
    if (n < 0) {
        send_gifts(l);
        n = task_host_write(&h, room_of(l->gifts, sizeof l->gifts));
    }
    l->gifts_len += (size_t)n;
}

static void drop(struct limb *l, struct hop_deed d) {
    char words[SHELL_WORDS_MAX];
    struct shell *s = l->shells[d.child];
    uint64_t ns = d.why == HOP_LATE ? l->hop.config.connect_ns : l->hop.config.silent_ns;
    if (l->hop.closed)
        snprintf(words, sizeof words, "it was not waited for");
    else
        snprintf(words, sizeof words, "no answer for %g s%s%.200s", (double)ns / NS_PER_S,
                 s->words[0] != '\0' ? ": " : "", s->words);
    shell_drop(s, d.why, words);
}

static void tell_lost(struct limb *l, struct hop_deed d) {
    char words[LOST_WORDS_MAX + 64];
    bool itself = strncmp(l->lost, l->names[d.host], strlen(l->names[d.host])) == 0 &&
                  strchr(":", l->lost[strlen(l->names[d.host])]) != NULL;
    if (itself)
        snprintf(words, sizeof words, "the connection broke%s", l->lost + strlen(l->names[d.host]));
    else
        snprintf(words, sizeof words, "the way to it broke at %s", l->lost);
    up(l, (struct frame){.kind = FRAME_LOST, .host = d.host, .body = bytes_from_str(words)});
}

/* Whoever is not listened to cannot be blamed for silence. */
static void excuse(struct limb *l) {
    for (uint32_t i = 0; i < l->hop.used && l->hushed; i++)
        if (l->shells[i] != NULL)
            hop_heard(&l->hop, i, l->config.loop->now);
}

static void pump(struct limb *l) {
    struct hop_deed d;
    excuse(l);
    while ((d = hop_next(&l->hop, l->config.loop->now)).kind != HOP_NOTHING) {
        if (d.kind != HOP_GIVE)
            send_gifts(l);
        switch (d.kind) {
        case HOP_CONNECT:
            connect_to(l, d);
            break;
        case HOP_GIVE:
            give(l, d);
            break;
        case HOP_RELEASE:
            shell_say(l->shells[d.child], &(struct frame){.kind = FRAME_LAST});
            break;
        case HOP_DROP:
            drop(l, d);
            break;
        default:
            tell_lost(l, d);
            break;
        }
    }
    send_gifts(l);
}

/* ---- The command on this host ------------------------------------------------------------------ */

static void on_wrote(void *context, int stream, struct bytes bytes) {
    struct limb *l = context;
    up(l, (struct frame){.kind = FRAME_OUTPUT,
                         .host = l->config.task->self,
                         .flag = (uint8_t)stream,
                         .body = bytes});
}

static void on_took(void *context, uint64_t bytes) {
    struct limb *l = context;
    l->tool_taken = bytes;
}

static void tell_over(struct limb *l, enum frame_end how, uint32_t number, const char *words) {
    l->host_over = true;
    up(l, (struct frame){.kind = FRAME_OVER,
                         .host = l->config.task->self,
                         .flag = (uint8_t)how,
                         .number = number,
                         .body = bytes_from_str(words)});
}

static void tell_end(struct limb *l) {
    int status = l->tool.status;
    if (l->late)
        tell_over(l, FRAME_TIMED, 0, "");
    else if (WIFSIGNALED(status))
        tell_over(l, FRAME_KILLED, (uint32_t)WTERMSIG(status), "");
    else
        tell_over(l, FRAME_EXITED, (uint32_t)WEXITSTATUS(status), "");
}

/* Files that are wanted go first: nobody waits for a host that is over. */
static void on_over(void *context) {
    struct limb *l = context;
    l->tool_taken = UINT64_MAX;
    bool wanted = l->config.task->get_count > 0 && !l->stopped;
    l->gleaner = wanted ? gleaner_new(l->config.task) : NULL;
    if (l->gleaner == NULL)
        tell_end(l);
}

static void glean(struct limb *l) {
    uint8_t piece[PIECE_BYTES];
    struct frame f;
    for (int i = 0; l->gleaner != NULL && !l->config.full(l->config.context); i++) {
        if (i == GLEANED_AT_ONCE) { /* beats, and what others say, go in between */
            loop_wake_at(l->config.loop, l->config.loop->now);
            return;
        }
        switch (gleaner_next(l->gleaner, room_of(piece, sizeof piece), &f)) {
        case GLEANED_FRAME:
            f.host = l->config.task->self;
            up(l, f);
            break;
        case GLEANED_NOT_YET:
            loop_wake_at(l->config.loop, l->config.loop->now);
            return;
        case GLEANED_ALL:
            gleaner_free(l->gleaner);
            l->gleaner = NULL;
            tell_end(l);
            return;
        }
    }
}

static bool on_spares(void *context, pid_t child) {
    struct limb *l = context;
    bool ours = false;
    for (uint32_t i = 0; i < l->hop.used && !ours; i++)
        ours = l->shells[i] != NULL && l->shells[i]->pid == child;
    return ours;
}

/* What is run may be in a folder whose name others could guess. */
static int judge_folder(const struct task *t, char why[NEST_WHY_MAX]) {
    char *own = t->own.len > 0 ? strndup((const char *)t->own.at, t->own.len) : NULL;
    snprintf(why, NEST_WHY_MAX, "there is no memory");
    int r = t->own.len == 0 ? 0 : own == NULL ? -ENOMEM : nest_look(own, why);
    free(own);
    return r;
}

/* Nothing of ours can be in a folder that is somebody else's; in one that others can get at there may be. */
static void tell_strange(struct limb *l, int error, const char *why) {
    bool strange = error == -ENOENT || error == -EPERM || error == -ENOTDIR || error == -ELOOP;
    l->tool_taken = READS_NO_MORE;
    tell_over(l, strange ? FRAME_STRANGE : FRAME_FAILED, 0, why);
}

static void begin_tool(struct limb *l) {
    const struct task *t = l->config.task;
    bool reads = t->input && (t->input_host == FRAME_ALL || t->input_host == t->self);
    char *line = strndup((const char *)t->command.at, t->command.len);
    int r = line == NULL ? -ENOMEM : tool_start(&l->tool, line, !reads);
    free(line);
    if (r < 0)
        tell_over(l, FRAME_FAILED, 0, strerror(-r));
    else if (t->command_ns > 0)
        l->tool_until = l->config.loop->now + t->command_ns;
}

/* When all files are here. */
static void start_command(struct limb *l) {
    const struct task *t = l->config.task;
    char why[NEST_WHY_MAX];
    int r;
    if (l->started || l->stopped || !parcels_settled(l->parcels))
        return;
    l->started = true;
    if (l->hop.closed) { /* everybody was signalled meanwhile */
        l->tool_taken = READS_NO_MORE;
        tell_over(l, FRAME_KILLED, l->signal, "");
        return;
    }
    if (l->parcels->trouble[0] != '\0') {
        l->tool_taken = READS_NO_MORE;
        tell_over(l, FRAME_FAILED, 0, l->parcels->trouble);
    } else if ((r = judge_folder(t, why)) < 0) {
        tell_strange(l, r, why);
    } else if (t->command.len == 0) {
        on_over(l);
    } else {
        begin_tool(l);
    }
}

/* More of the files for those below who have room for it. */
static void feed(struct limb *l) {
    uint8_t piece[PIECE_BYTES];
    struct frame f;
    for (uint32_t i = 0; i < l->hop.used && l->parcels->count > 0; i++) {
        struct shell *s = l->shells[i];
        if (s == NULL || l->hop.children[i].link != HOP_READY)
            continue;
        while (shell_backlog(s) < FEED_BYTES &&
               parcels_next(l->parcels, &l->marks[i], room_of(piece, sizeof piece), &f))
            shell_say(s, &f);
    }
}

/* ---- What comes from above --------------------------------------------------------------------- */

int limb_take(struct limb *l, const struct task_host *h) {
    if (h->host >= l->hop.config.hosts)
        return -EPROTO;
    char *name = strndup((const char *)h->name.at, h->name.len);
    if (name == NULL)
        return -ENOMEM;
    if (!hop_take(&l->hop, h->host, h->crate)) {
        free(name);
        return -EPROTO;
    }
    free(l->names[h->host]);
    l->names[h->host] = name;
    return 0;
}

void limb_share(struct limb *l) {
    l->idle = false;
    hop_share(&l->hop);
    pump(l);
}

static bool take_hosts(struct limb *l, struct bytes in) {
    struct task_host h;
    int r;
    while ((r = task_host_read(&in, &h)) > 0)
        if (limb_take(l, &h) < 0)
            return false;
    limb_share(l);
    return r == 0;
}

static void pass_input(struct limb *l, const struct frame *f) {
    const struct task *t = l->config.task;
    bool all = f->host == FRAME_ALL;
    /* Everybody gets something else: who has had his says nothing of those behind him. */
    bool apart = !all && t->input_host == FRAME_ALL;
    if (l->told_taken == UINT32_MAX)
        l->told_taken = 0; /* so whoever has sent it counts, until told otherwise */
    if (!l->config.root && (all || f->host == t->self)) {
        bool first = l->tool_taken == UINT64_MAX && (l->tool.in.fd >= 0 || !l->started);
        l->tool_taken = first ? 0 : l->tool_taken;
        if (!l->started || l->tool.begun) /* it was begun, or may be */
            tool_type(&l->tool, f->body);
    }
    for (uint32_t i = 0; i < l->hop.used; i++) {
        bool ready = l->shells[i] != NULL && l->hop.children[i].link == HOP_READY;
        if (!ready || (!apart && l->taken[i] == READS_NO_MORE) ||
            (!all && !is_behind(l, i, f->host)))
            continue;
        l->taken[i] = l->taken[i] == UINT64_MAX ? 0 : l->taken[i];
        shell_say(l->shells[i], f);
    }
}

/* All of them end what runs: whoever was not reached by then is not begun any more. */
static void pass_signal(struct limb *l, const struct frame *f) {
    hop_close(&l->hop);
    l->signal = f->number;
    if (!l->config.root)
        tool_signal(&l->tool, (int)f->number);
    for (uint32_t i = 0; i < l->hop.used; i++)
        if (l->shells[i] != NULL && l->hop.children[i].link == HOP_READY)
            shell_say(l->shells[i], f);
    pump(l); /* who is being connected to is dropped */
}

bool limb_told(struct limb *l, const struct frame *f) {
    switch (f->kind) {
    case FRAME_HOSTS:
        return take_hosts(l, f->body);
    case FRAME_LAST:
        l->released = true;
        return true;
    case FRAME_INPUT:
        pass_input(l, f);
        return f->host == FRAME_ALL || f->host < l->hop.config.hosts;
    case FRAME_SIGNAL:
        pass_signal(l, f);
        return f->number > 0 && f->number < 64;
    case FRAME_PUT:
        return parcels_take(l->parcels, f);
    default:
        return false;
    }
}

uint64_t limb_taken(const struct limb *l) {
    uint64_t least = l->tool_taken;
    for (uint32_t i = 0; i < l->hop.used; i++)
        if (l->shells[i] != NULL && l->taken[i] < least)
            least = l->taken[i];
    return least;
}

bool limb_complete(const struct limb *l) {
    return hop_complete(&l->hop);
}

/* ---- A turn ------------------------------------------------------------------------------------ */

void limb_reaped(struct limb *l, pid_t pid, int status) {
    if (tool_reaped(&l->tool, pid, status))
        return;
    for (uint32_t i = 0; i < l->hop.used; i++)
        if (l->shells[i] != NULL && shell_reaped(l->shells[i], pid, status))
            return;
}

static void hush(struct limb *l) {
    bool full = l->config.full(l->config.context);
    excuse(l);
    for (uint32_t i = 0; i < l->hop.used; i++)
        if (l->shells[i] != NULL) /* a greeting is short, and waited for */
            shell_hush(l->shells[i], full && l->hop.children[i].link == HOP_READY);
    tool_hush(&l->tool, full);
    l->hushed = full;
}

static void watch_tool(struct limb *l) {
    uint64_t now = l->config.loop->now;
    if (l->tool_until != 0 && now >= l->tool_until && !l->tool.over) {
        l->late = true;
        l->tool_until = 0;
        tool_end(&l->tool);
    }
    tool_tick(&l->tool);
}

static void wake_at(struct limb *l, uint64_t at) {
    if (at != 0)
        loop_wake_at(l->config.loop, at);
}

static void watch_shells(struct limb *l) {
    for (uint32_t i = 0; i < l->hop.used; i++) {
        if (l->shells[i] == NULL)
            continue;
        shell_tick(l->shells[i]);
        wake_at(l, l->shells[i] != NULL ? shell_deadline(l->shells[i]) : 0);
    }
}

/* What a helper says of itself. */
static void report(struct limb *l) {
    uint64_t now = l->config.loop->now, taken = limb_taken(l);
    uint32_t kib = taken >= READS_NO_MORE ? UINT32_MAX : (uint32_t)(taken >> KIB_SHIFT);
    if (kib != l->told_taken)
        up(l, (struct frame){.kind = FRAME_TAKEN, .number = kib});
    l->told_taken = kib;
    if (!l->released && !l->idle && hop_wants(&l->hop, now)) {
        l->idle = true;
        up(l, (struct frame){.kind = FRAME_IDLE});
    }
    if (l->config.task->beat_ns > 0 && now >= l->beat_at) {
        l->beat_at = now + l->config.task->beat_ns;
        up(l, (struct frame){.kind = FRAME_BEAT});
    }
}

/* While there are children something happens at least once in a beat. If not, it was us who stood still (Ctrl-Z, a slow disk), and what
 * they have said since waits to be read. */
static void note_absence(struct limb *l) {
    uint64_t now = l->config.loop->now, beat = l->config.task->beat_ns;
    if (l->settled_at != 0 && beat > 0 && l->alive > 0 && now - l->settled_at > 2 * beat)
        hop_excuse(&l->hop, now - l->settled_at);
    l->settled_at = now;
    wake_at(l, l->alive > 0 && beat > 0 ? now + beat : 0);
}

/* Files for a child whose pipe has taken all that there was. */
static void feed_again(struct limb *l) {
    for (uint32_t i = 0; i < l->hop.used && l->parcels->count > 0; i++)
        if (l->shells[i] != NULL && l->hop.children[i].link == HOP_READY &&
            shell_backlog(l->shells[i]) < FEED_BYTES && parcels_have(l->parcels, &l->marks[i]))
            loop_wake_at(l->config.loop, l->config.loop->now);
}

void limb_settle(struct limb *l) {
    note_absence(l);
    pump(l);
    watch_tool(l);
    watch_shells(l);
    if (!l->config.root) {
        start_command(l);
        glean(l);
        report(l);
    }
    feed(l);
    for (uint32_t i = 0; i < l->hop.used; i++)
        if (l->shells[i] != NULL)
            shell_settle(l->shells[i]);
    feed_again(l);
    hush(l);
    while (!list_empty(&l->ended))
        shell_free(CONTAINER_OF(list_pop_front(&l->ended), struct shell, at));
    wake_at(l, hop_deadline(&l->hop, l->config.loop->now));
    wake_at(l, tool_deadline(&l->tool));
    wake_at(l, l->tool_until);
    wake_at(l, l->config.root ? 0 : l->beat_at);
}

void limb_stop(struct limb *l) {
    l->stopped = true;
    l->released = true;
    l->host_over =
        l->host_over || !l->tool.begun || l->gleaner != NULL; /* nobody will hear of it */
    gleaner_free(l->gleaner);
    l->gleaner = NULL;
    hop_close(&l->hop);
    tool_end(&l->tool);
    for (uint32_t i = 0; i < l->hop.used; i++)
        if (l->shells[i] != NULL)
            shell_drop(l->shells[i], HOP_LOST, "it was ended from here");
}

bool limb_over(const struct limb *l) {
    bool here = l->config.root || l->host_over;
    return here && l->alive == 0 &&
           (l->stopped || (hop_done(&l->hop) && (l->config.root || l->released || l->hop.closed)));
}

/* ---- Beginning and end ------------------------------------------------------------------------- */

static int allocate(struct limb *l) {
    const struct hop_config *c = &l->hop.config;
    l->names = calloc(c->hosts, sizeof *l->names);
    l->shells = calloc(c->children, sizeof *l->shells);
    l->taken = calloc(c->children, sizeof *l->taken);
    l->marks = calloc(c->children, sizeof *l->marks);
    bool all = l->books != NULL && l->names != NULL && l->shells != NULL && l->taken != NULL &&
               l->marks != NULL;
    return all ? 0 : -ENOMEM;
}

struct limb *limb_new(const struct limb_config *c) {
    struct limb *l = calloc(1, sizeof *l);
    struct hop_config hop = c->task->hop;
    if (l == NULL)
        return NULL;
    hop.root = c->root;
    l->config = *c;
    l->tool_taken = UINT64_MAX;
    l->told_taken = UINT32_MAX;
    list_init(&l->ended);
    l->shell_events = (struct shell_events){.context = l,
                                            .files = c->files,
                                            .greeted = on_greeted,
                                            .heard = on_heard,
                                            .ended = on_ended};
    l->tool_events = (struct tool_events){
        .context = l, .wrote = on_wrote, .took = on_took, .over = on_over, .spares = on_spares};
    tool_init(&l->tool, c->loop, &l->tool_events);
    l->tool.files = c->files;
    l->parcels = c->parcels != NULL ? c->parcels : &l->own_parcels;
    l->books = calloc(1, hop_bytes(&hop));
    if (l->books != NULL)
        hop_init(&l->hop, &hop, l->books);
    if (allocate(l) < 0) {
        limb_free(l);
        return NULL;
    }
    if (!c->root)
        parcels_expect(l->parcels, c->task);
    return l;
}

void limb_free(struct limb *l) {
    if (l == NULL)
        return;
    for (uint32_t i = 0; l->shells != NULL && i < l->hop.used; i++)
        shell_free(l->shells[i]);
    while (!list_empty(&l->ended))
        shell_free(CONTAINER_OF(list_pop_front(&l->ended), struct shell, at));
    for (uint32_t i = 0; l->names != NULL && i < l->hop.config.hosts; i++)
        free(l->names[i]);
    tool_fini(&l->tool);
    free(l->names);
    free(l->shells);
    free(l->taken);
    free(l->marks);
    gleaner_free(l->gleaner);
    parcels_fini(&l->own_parcels);
    free(l->books);
    free(l);
}
