/* SPDX-License-Identifier: MIT */
/* storm-mm: the machine manager's process.
 *
 *     storm-mm FOLDER [--listener FD]
 *     storm-mm --history FOLDER [MOST [JOB]]
 *     storm-mm --try FILE: can this policy be loaded?
 *     storm-mm --check FOLDER: can the state be read? If not, why, to standard output
 *
 * Everything it must know stands in the folder: the cluster's file, its hosts, what it must not forget, the log of
 * jobs. The watcher starts it, and starts it again when it dies; it may hand over the socket that it has
 * listened at all the time. SIGTERM ends it in good order; it survives any other end as well. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/units.h"
#include "client/cluster.h"
#include "client/hostsfile.h"
#include "client/keys.h"
#include "client/nodespec.h"
#include "manager/guest.h"
#include "manager/past.h"
#include "mm/mm.h"
#include "os/cast.h"
#include "os/child.h"
#include "os/hook.h"
#include "os/hurry.h"
#include "os/journal.h"
#include "os/keyring.h"
#include "os/life.h"
#include "os/plan.h"
#include "os/seal.h"
#include "os/store.h"

/* Jobs that are remembered, those that are over included; clients at once. */
enum { JOBS_MAX = 1 << 18, CLIENTS_MAX = 10240 };

/* Processors of a node, where nodes differ: more only if there was one with more when the manager started. */
enum { PES_WIDE = 256 };

struct manager {
    struct cluster cluster;
    struct keyring *keys; /* NULL: links are open */
    struct seals *seals;
    struct sealer sealer;
    struct roster roster; /* borrows from the cluster */
    struct nodespec spec;
    struct nodespec_told told;
    struct mm_config config;
    char trouble[GUEST_WHY_MAX];
    struct journal *journal;
    struct life *life;
    struct source signals;
    struct source folder; /* what changes in it */
};

static int complain(const char *what, const char *why) {
    fprintf(stderr, "storm-mm: %s: %s\n", what, why);
    return 1;
}

/* ---- its machine ---- */

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    struct manager *m = context;
    struct arena arena;
    size_t bytes = mm_bytes(&m->config);
    (void)node;
    (void)globals;
    void *at = calloc(1, bytes); /* pages that are never touched cost nothing */
    if (at == NULL) {
        complain("memory", strerror(ENOMEM));
        exit(1);
    }
    arena_init(&arena, at, bytes);
    return mm_machine(mm_new(&m->config, &arena));
}

static void on_note(void *context, struct bytes note) {
    const struct manager *m = context;
    if (note.len < 5 || memcmp(note.at, "node ", 5) != 0)
        return; /* for people, not for the hook */
    int r = *m->cluster.hook != '\0' ? hook_call(m->cluster.hook, note) : 0;
    if (r < 0)
        complain(m->cluster.hook, strerror(-r));
}

static void configure(struct manager *m, const struct prim_config *prim) {
    m->config = (struct mm_config){.limits = prim->limits,
                                   .pes = m->cluster.pes,
                                   .jobs_max = JOBS_MAX,
                                   .bytes_per_s = m->cluster.bytes_per_s,
                                   .clients_max = CLIENTS_MAX};
    if (m->cluster.widths) /* and wider ones may be said later */
        m->config.pes_max = PES_WIDE;
    if (nodespec_widest(&m->spec) > m->config.pes_max)
        m->config.pes_max = nodespec_widest(&m->spec);
    if (nodespec_tell(&m->spec, &m->told) == 0)
        m->config.said = m->told.in;
    m->roster = cluster_roster(&m->cluster);
    m->config.roster = &m->roster;
    mm_config_times(&m->config);
    m->config.lease_ns = PLAN_LEASE_NS;
    if (m->cluster.orphan_ns > 0)
        m->config.orphan_ns = m->cluster.orphan_ns;
    if (m->cluster.vacate_ns > 0)
        m->config.vacate_ns = m->cluster.vacate_ns;
    m->config.hosts_each = m->cluster.hosts_each;
    m->config.hosts_all = m->cluster.hosts_all;
    m->config.slots = m->cluster.slots;
    m->config.quantum_ns = m->cluster.quantum_ns;
    m->config.policy = guest_policy(m->cluster.policy, &m->config.guest, m->trouble);
    m->config.trouble = *m->trouble != '\0' ? m->trouble : NULL;
}

/* ---- its end ---- */

static void on_signal(struct source *s, uint32_t events) {
    struct manager *m = CONTAINER_OF(s, struct manager, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(s->fd, &info, sizeof info) == sizeof info)
        life_end(m->life);
}

static int watch_signals(struct manager *m) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    m->signals =
        (struct source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_signal};
    if (m->signals.fd < 0)
        return -errno;
    return loop_add(life_loop(m->life), &m->signals, EPOLLIN);
}

/* ---- its hosts ---- */

static void tell_hosts(struct manager *m, const struct hosts *hosts) {
    struct hosts_told told;
    struct input in = {.kind = INPUT_ROSTER, .now = life_now(m->life)};
    if (hosts_tell(hosts, &told) < 0) {
        complain("hosts", strerror(ENOMEM));
        return;
    }
    in.roster = (struct input_roster){.taken = &told.taken, .names = told.names};
    life_feed(m->life, LAYER_DAEMON, &in);
    free(told.memory);
}

/* One that cannot be read changes nothing: whoever has written it will write another. */
/* Who got a number of somebody else has another key for it: that is written down before the list of hosts is. */
static void expect_keys(struct manager *m) {
    bool of_hosts = m->cluster.port_first != 0; /* virtual nodes never give a number away */
    int r = m->keys == NULL || !of_hosts ? 0 : keys_expect(".", m->keys);
    if (r < 0)
        complain("generations", strerror(-r));
    else if (of_hosts && m->life != NULL)
        life_review_keys(m->life);
}

static void read_hosts(struct manager *m) {
    expect_keys(m);
    struct cluster_trouble trouble;
    struct hosts hosts;
    int r = hosts_read(&hosts, m->cluster.nodes, "hosts", &trouble);
    if (r == 0)
        tell_hosts(m, &hosts);
    else if (r != -ENOENT)
        complain("hosts", *trouble.words != '\0' ? trouble.words : strerror(-r));
    hosts_free(&hosts);
}

/* What cannot be read says nothing: whoever wrote it was told what is wrong. */
static void load_spec(struct manager *m) {
    char why[NODESPEC_WHY_MAX];
    struct nodespec fresh;
    if (hosts_nodespec(&m->cluster, ".", &fresh, why) < 0) {
        complain("nodes", why);
        nodespec_free(&fresh); /* what was said before still counts */
        return;
    }
    nodespec_free(&m->spec);
    m->spec = fresh;
}

/* Names of hosts that have come since mean something now. */
static void read_spec(struct manager *m) {
    struct cluster_trouble trouble;
    struct nodespec_told told;
    struct input in = {.kind = INPUT_TRAITS, .now = life_now(m->life)};
    if (cluster_load_hosts(&m->cluster, ".", &trouble) < 0)
        return; /* complained of already */
    load_spec(m);
    if (nodespec_widest(&m->spec) > m->config.pes_max && nodespec_widest(&m->spec) > m->config.pes)
        complain("nodespec", "a node is wider than any was when the manager started; it counts as "
                             "wide as that until the manager is started again");
    if (nodespec_tell(&m->spec, &told) < 0) {
        complain("nodespec", strerror(ENOMEM));
        return;
    }
    in.traits = told.in;
    life_feed(m->life, LAYER_DAEMON, &in);
    free(told.memory);
}

static void on_folder(struct source *s, uint32_t events) {
    struct manager *m = CONTAINER_OF(s, struct manager, folder);
    alignas(struct inotify_event) char room[4096];
    bool hosts = false, spec = false;
    ssize_t len;
    (void)events;
    while ((len = read(s->fd, room, sizeof room)) > 0)
        for (char *at = room; at < room + len;) {
            const struct inotify_event *e = (const struct inotify_event *)at;
            bool lost = (e->mask & IN_Q_OVERFLOW) != 0;
            hosts = hosts || lost || (e->len > 0 && strcmp(e->name, "hosts") == 0);
            spec = spec || lost || (e->len > 0 && strcmp(e->name, "nodespec") == 0);
            at += sizeof *e + e->len;
        }
    if (hosts)
        read_hosts(m);
    if (hosts || spec)
        read_spec(m);
}

/* It is replaced by rename, never written to. What has happened since the cluster was loaded is read now. */
static int watch_hosts(struct manager *m) {
    m->folder = (struct source){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .ready = on_folder};
    if (m->folder.fd < 0 || inotify_add_watch(m->folder.fd, ".", IN_MOVED_TO) < 0)
        return -errno;
    read_hosts(m);
    return loop_add(life_loop(m->life), &m->folder, EPOLLIN);
}

/* ---- its life ---- */

static int load(struct manager *m, const char *folder, struct prim_config *ret) {
    struct cluster_trouble trouble;
    struct tree tree;
    int r = cluster_load(&m->cluster, folder, &trouble);
    if (r < 0)
        return complain(folder, *trouble.words != '\0' ? trouble.words : strerror(-r));
    if (!plan_tree(m->cluster.tree, &tree))
        return complain(m->cluster.tree, "there is no such tree");
    if (chdir(folder) < 0)
        return complain(folder, strerror(errno));
    *ret = plan_prim(m->cluster.nodes, tree, PRIM_PERIOD_NS);
    load_spec(m);
    return 0;
}

/* The master of all keys is read once; the file is nobody's but ours. */
static int take_keys(struct manager *m) {
    char why[256];
    struct keyfile file;
    int r = keyring_load("master.key", &file, why);
    if (r < 0)
        return complain("keys", why);
    const struct keyring_config config = {
        .file = &file, .self = m->cluster.root, .seat_first = m->cluster.root, .seats = 1};
    r = keyring_new(&config, &m->keys);
    explicit_bzero(&file, sizeof file);
    if (r < 0)
        return complain("master.key", r == -EINVAL ? "it is no master key" : strerror(-r));
    m->seals = keyring_seals(m->keys);
    if (m->seals == NULL || !seals_ready())
        return complain("seals", strerror(ENOMEM));
    m->sealer = seals_sealer(m->seals);
    return 0;
}

static struct address *make_book(const struct cluster *c) {
    struct in_addr host = {0};
    struct address *book = calloc(c->nodes + 1, sizeof *book);
    if (book != NULL && c->asks) {
        book[c->nodes] = c->manager; /* the others tell the lodge */
        return book;
    }
    if (c->links == TRANSPORT_TCP && c->manager.any.sa_family == AF_INET)
        host = c->manager.in.sin_addr;
    for (uint32_t i = 0; book != NULL && i <= c->nodes; i++)
        book[i] = plan_address(i, c->links, host);
    return book;
}

static const char *state_words(int error) {
    switch (-error) {
    case EXDEV:
        return "it belongs to a cluster of another name; move it away, or use that cluster";
    case EBUSY:
        return "another manager has it open";
    case EUCLEAN:
        return "it is damaged; move it away to start anew";
    case ENOTSUP:
        return "it was written by a newer STORM; use that one, or move it away to start anew";
    default:
        return strerror(-error);
    }
}

/* State belongs to the cluster of this name, whatever key it has this time. */
static int open_journal(struct manager *m) {
    int error = 0;
    const uint64_t owner[2] = {hash_once(m->cluster.name, strlen(m->cluster.name)), 0};
    m->journal = journal_open(".", owner, &error);
    if (m->journal != NULL)
        return 0;
    return complain("state.db", state_words(error));
}

/* Before a manager begins, without a trace. */
static int check(const char *folder) {
    struct store store;
    const char *what = "state.db";
    int r = chdir(folder) < 0 ? -errno : journal_check(".");
    if (r == 0 && access("mm/state", F_OK) == 0) {
        what = "mm/state";
        r = store_open(&store, "mm");
        if (r == 0)
            store_close(&store);
    }
    if (r < 0)
        printf("%s/%s: %s\n", folder, what, state_words(r));
    return r < 0;
}

static int open_caster(const struct manager *m, struct caster *ret) {
    const struct cluster *c = &m->cluster;
    if (c->links == TRANSPORT_TCP && c->manager.any.sa_family != AF_INET)
        return -EAFNOSUPPORT;
    if (c->links == TRANSPORT_TCP)
        return caster_init_group(ret, c->key, c->manager.in.sin_addr);
    return caster_init(ret, c->nodes);
}

/* Commands of this machine come by a Unix socket, where the system says who they are; -1: they come as all others do. */
static int listen_near(const struct manager *m) {
    struct address near = plan_near(m->cluster.nodes);
    int fd = address_is_far(&m->cluster.manager) ? address_listen(&near) : -1;
    if (fd < -1)
        complain(near.local.sun_path, strerror(-fd));
    return fd < 0 ? -1 : fd;
}

static int live(struct manager *m, const struct prim_config *prim, int listener) {
    int error = 0;
    struct address *book = make_book(&m->cluster);
    struct caster caster; /* without it strobes go by the tree alone */
    bool casts = open_caster(m, &caster) == 0;
    struct life_config config = {.prim = *prim,
                                 .caster = &caster,
                                 .self = m->cluster.nodes,
                                 .root = true,
                                 .book = book,
                                 .listener = listener,
                                 .near_listener = listen_near(m),
                                 .near_client = KEYS_DESK,
                                 .accepts =
                                     1U << PURPOSE_TREE | 1U << PURPOSE_SLOT | 1U << PURPOSE_CLIENT,
                                 .key = {m->cluster.key[0], m->cluster.key[1]},
                                 .folder = "mm",
                                 .keys = m->keys,
                                 .sealer = m->keys == NULL ? NULL : &m->sealer,
                                 .lodge = m->cluster.asks,
                                 .log = journal_log(m->journal),
                                 .daemon = make_daemon,
                                 .note = on_note,
                                 .context = m};
    config.prim.casts = casts;
    m->life = book == NULL ? NULL : life_new(&config, &error);
    if (m->life == NULL)
        return 1;
    int r = watch_signals(m);
    if (r < 0)
        return complain("signals", strerror(-r));
    r = watch_hosts(m);
    if (r < 0) /* it lives, and learns of changes when it is started again */
        complain("hosts", strerror(-r));
    life_run(m->life);
    journal_close(m->journal); /* it is in the life's loop */
    life_free(m->life);
    guest_left();
    if (casts)
        caster_fini(&caster);
    seals_free(m->seals);
    keyring_free(m->keys);
    close(m->signals.fd);
    close(m->folder.fd);
    free(book);
    return 0;
}

int main(int argc, char **argv) {
    struct manager m = {.signals.fd = -1, .folder.fd = -1};
    struct prim_config prim;
    int listener = -1;
    if (argc >= 3 && strcmp(argv[1], "--history") == 0)
        return past_print(argv[2], argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0,
                          argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 0);
    if (argc == 3 && strcmp(argv[1], "--try") == 0)
        return guest_try(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--check") == 0)
        return check(argv[2]);
    if (argc == 4 && strcmp(argv[2], "--listener") == 0)
        listener = atoi(argv[3]);
    else if (argc != 2)
        return complain("usage", "storm-mm FOLDER [--listener FD]");
    child_raise_limits();
    hurry(NULL);
    signal(SIGPIPE, SIG_IGN);
    hook_prepare();
    int r = load(&m, argv[1], &prim);
    if (r != 0)
        return r;
    configure(&m, &prim);
    r = m.cluster.sealed ? take_keys(&m) : 0;
    if (r == 0)
        r = open_journal(&m);
    if (r != 0)
        return r;
    return live(&m, &prim, listener);
}
