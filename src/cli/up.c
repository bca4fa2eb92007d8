/* SPDX-License-Identifier: MIT */
/* storm up: brings a cluster up: of virtual nodes on this machine, or of hosts.
 *
 * The claim on the cluster's folder says whether it runs. Whoever gets the claim sweeps what a crash may
 * have left, starts the watcher, and waits until all nodes are there and the manager answers. Hosts are brought up by the
 * tender (cli/tender.h), one of the watcher's processes; those that fail are named, the others are enough. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "os/companion.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/down.h"
#include "cli/fabrics.h"
#include "cli/foreground.h"
#include "cli/hosting.h"
#include "cli/options.h"
#include "cli/policy.h"
#include "cli/pulse.h"
#include "os/release.h"
#include "cli/scribe.h"
#include "cli/state.h"
#include "cli/terminal.h"
#include "client/hostsfile.h"
#include "client/keys.h"
#include "client/nodespec.h"
#include "os/claim.h"
#include "os/files.h"
#include "os/loop.h"
#include "os/plan.h"
#include "os/remains.h"
#include "os/watch.h"

enum { PES_MAX = 4096, SYSTEM_CORES_MAX = 1024 };

/* All processes of a machine share its processors, so who passes something on costs more than the depth
 * that he saves; only many nodes make it worth while. */
enum { FLAT_NODES = 64 };

/* How often to ask whether all are there, and how long to wait for the next to come. */
#define ASK_NS      (5 * NS_PER_MS)
#define PATIENCE_NS (60 * NS_PER_S)

/* For the manager to say its first word. */
#define FIRST_NS (10 * NS_PER_S)

struct up {
    uint64_t local; /* 0: not said */
    uint64_t pes;
    const char *tree;
    struct tree shape;
    const char *links;
    const char *name;
    const char *policy;
    const char *launchers;
    const char *confine;
    enum confine confines;
    uint64_t system_cores;
    uint64_t quantum_ns;
    uint64_t mpl;
    uint64_t orphan_ns, vacate_ns;
    uint64_t hosts_each, hosts_all;
    const char *fabric;
    const char *bandwidth;
    const char *hook;
    const char *attribs, *nodespec; /* NULL: nothing is said of nodes */
    const char *share;
    bool verbose;
    struct hosting hosting;
    uint64_t begin_ns;
    bool foreground;
    char folder[CLUSTER_PATH_MAX];
    struct cluster cluster;
    struct session_other other; /* of a manager that we cannot talk to; protocol 0: there is none */
};

static void print_help(const struct option *table) {
    puts(
        "usage: storm up [--local N | --hosts HOSTS] [OPTIONS]\n"
        "\n"
        "Brings up a cluster of virtual nodes on this machine, or of hosts that have nothing but a\n"
        "remote shell, and returns when all of them are there. Hosts that fail are named, the others\n"
        "come up. Inside an allocation of Slurm or PBS, or with STORM_HOSTS set, its hosts are meant.\n"
        "The daemons run in the background until `storm down`; whichever dies is started again. A\n"
        "second `up` of a cluster that runs says so. What the cluster must remember, its log and its\n"
        "sockets are in STORM_HOME/NAME (STORM_HOME is ~/.storm if it is not set).\n");
    options_print(table, stdout);
}

/* ---- what is asked for ---- */

/* The daemons work in another directory: its whole path is kept. */
static int check_hook(struct up *u) {
    char whole[PATH_MAX];
    if (u->hook == NULL)
        return 0;
    if (realpath(u->hook, whole) == NULL || access(whole, X_OK) < 0)
        return complain("up", "--hook %s: %s; give a program", u->hook, strerror(errno));
    if (strlen(whole) >= sizeof u->cluster.hook || strchr(whole, '\n') != NULL)
        return complain("up", "--hook %s: its path is too long", u->hook);
    memcpy(u->cluster.hook, whole, strlen(whole) + 1);
    return 0;
}

static int check_policy(struct up *u) {
    struct cluster *c = &u->cluster;
    int r = policy_turns("up", &u->mpl, &u->quantum_ns);
    if (r != 0)
        return r;
    c->slots = (uint32_t)u->mpl;
    c->quantum_ns = u->quantum_ns;
    return policy_name("up", u->policy, c->policy, sizeof c->policy);
}

static bool has_hosts(const struct up *u) {
    return u->hosting.source != NULL;
}

static const char *usual_tree(const struct up *u) {
    uint64_t nodes = has_hosts(u) ? u->hosting.roll.count : u->local;
    return nodes <= FLAT_NODES ? "flat" : "k-ary:16";
}

/* Between machines links are sealed, unless it is said that they need not be. */
static int check_links(struct up *u) {
    if (u->links == NULL)
        u->links = has_hosts(u) ? "tls" : "unix";
    u->cluster.sealed = strcmp(u->links, "tls") == 0;
    u->cluster.asks = u->cluster.sealed || has_hosts(u);
    if (!transport_parse(u->cluster.sealed ? "tcp" : u->links, &u->cluster.links))
        return complain("up", "there are no links of kind \"%s\"; give unix, tcp or tls", u->links);
    if (has_hosts(u) && u->cluster.links == TRANSPORT_UNIX)
        return complain("up", "--links unix: it leads to no other machine; give tls, or tcp");
    return 0;
}

static int check_hosts(struct up *u) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (u->hosting.list != NULL && u->local != 0)
        return complain("up", "--local is for virtual nodes; give either that or --hosts");
    hosting_find(&u->hosting, u->local != 0);
    if (!has_hosts(u)) {
        u->pes = u->pes != 0 ? u->pes : 1;
        return 0;
    }
    snprintf(u->hosting.tender.confine, sizeof u->hosting.tender.confine, "%s", u->confine);
    u->hosting.tender.system_cores = (uint32_t)u->system_cores;
    if (u->pes == 0)
        u->pes = u->hosting.pes != 0 ? u->hosting.pes : online > 0 ? (uint64_t)online : 1;
    return hosting_check(&u->hosting);
}

static int check(struct up *u) {
    int r = check_hosts(u);
    if (r != 0)
        return r;
    if (u->local > PLAN_NODES_MAX)
        return complain("up", "--local %" PRIu64 ": give 1 to %d", u->local, PLAN_NODES_MAX);
    if (u->pes < 1 || u->pes > PES_MAX)
        return complain("up", "--pes %" PRIu64 ": give 1 to %d", u->pes, PES_MAX);
    r = check_links(u);
    if (r != 0)
        return r;
    if (u->tree == NULL)
        u->tree = usual_tree(u);
    if (!plan_tree(u->tree, &u->shape))
        return complain("up", "there is no tree \"%s\"; give k-ary:16, binomial, chain or flat",
                        u->tree);
    plan_tree_text(&u->shape, u->cluster.tree);
    if (has_hosts(u) && strcmp(u->launchers, "process") == 0)
        return complain("up", "--launchers process: only virtual nodes have them; leave it out");
    if (strcmp(u->launchers, "node") != 0 && strcmp(u->launchers, "process") != 0)
        return complain("up", "--launchers \"%s\": give node or process", u->launchers);
    if (!confine_parse(u->confine, &u->confines))
        return complain("up", "--confine \"%s\": give auto, cgroup, namespace or none", u->confine);
    if (u->system_cores > SYSTEM_CORES_MAX)
        return complain("up", "--system-cores: more than %d make no sense", SYSTEM_CORES_MAX);
    u->cluster.alone = u->share != NULL && strcmp(u->share, "nodes") == 0;
    if (u->share != NULL && !u->cluster.alone && strcmp(u->share, "pes") != 0)
        return complain("up", "--share \"%s\": give pes or nodes", u->share);
    r = check_hook(u);
    if (r == 0)
        r = check_policy(u);
    if (r != 0)
        return r;
    if (u->hosts_each > UINT32_MAX || u->hosts_all > UINT32_MAX)
        return complain("up", "--hosts-each, --hosts-all: that many hosts there are not");
    u->cluster.orphan_ns = u->orphan_ns;
    u->cluster.vacate_ns = u->vacate_ns;
    u->cluster.hosts_each = (uint32_t)u->hosts_each;
    u->cluster.hosts_all = (uint32_t)u->hosts_all;
    if (u->bandwidth != NULL && (units_parse_rate(u->bandwidth, &u->cluster.bytes_per_s) < 0 ||
                                 u->cluster.bytes_per_s == 0))
        return complain("up", "--bandwidth %s: how fast a node's link is: 10Gbit, 100Mbit",
                        u->bandwidth);
    if (u->fabric != NULL && !fabrics_word(u->fabric))
        return complain("up", "--fabric %s: give auto, streams, ofi or ofi:PROVIDER", u->fabric);
    snprintf(u->cluster.fabric, sizeof u->cluster.fabric, "%s", u->fabric == NULL ? "" : u->fabric);
    r = cluster_folder(u->name, u->folder, sizeof u->folder);
    if (r == -EINVAL)
        return complain(u->name, "this cannot be a cluster's name; use letters, digits, - and _");
    return r < 0 ? complain("STORM_HOME", "%s; set it to a folder of yours", strerror(-r)) : 0;
}

static int make_folder(const struct up *u) {
    char path[CLUSTER_PATH_MAX];
    size_t len = strlen(u->folder);
    for (size_t i = 1; i <= len; i++) {
        if (u->folder[i] != '/' && u->folder[i] != '\0')
            continue;
        memcpy(path, u->folder, i);
        path[i] = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -errno;
    }
    return access(u->folder, W_OK | X_OK) < 0 ? -errno : 0;
}

/* ---- bringing up ---- */

static int announce(void *context, const struct watch_news *news) {
    struct up *u = context;
    u->cluster.watcher = news->watcher;
    if (has_hosts(u))
        u->cluster.manager = *news->manager;
    snprintf(u->cluster.guarantee, sizeof u->cluster.guarantee, "%s", news->guarantee);
    return cluster_save(&u->cluster, u->folder);
}

static int write_down(void *context) {
    const struct up *u = context;
    return scribe_run(u->name);
}

static int tend(void *context) {
    const struct up *u = context;
    return tender_run(&u->hosting.tender);
}

/* A path that does not fit into an address is named from inside the folder: cluster_load knows. */
static void place_manager(struct cluster *c, const char *folder, struct in_addr host) {
    char text[CLUSTER_PATH_MAX + 128];
    c->root = c->nodes;
    c->manager = plan_address(c->nodes, c->links, host);
    if (c->links != TRANSPORT_UNIX)
        return;
    snprintf(text, sizeof text, "unix:%s/%s", folder, c->manager.local.sun_path);
    struct address whole;
    if (address_parse(&whole, text) == 0)
        c->manager = whole;
}

static void describe(struct up *u, struct in_addr host) {
    struct cluster *c = &u->cluster;
    struct timespec now;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(c->name, sizeof c->name, "%s", u->name);
    snprintf(c->prefix, sizeof c->prefix, "n");
    snprintf(c->version, sizeof c->version, "%s", release_version);
    c->nodes = u->local > 0 ? (uint32_t)u->local : online > 0 ? (uint32_t)online : 1;
    c->pes = (uint32_t)u->pes;
    c->started_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
    if (has_hosts(u))
        hosting_describe(&u->hosting, c);
    else
        place_manager(c, u->folder, host);
}

static int find_program(const char *name, char out[PATH_MAX]) {
    if (companion_find(name, out, PATH_MAX) == 0)
        return 0;
    complain(name, "it is neither beside storm nor in ../libexec/storm; install STORM as a whole");
    return STATUS_STORM;
}

/* The daemons work in another directory. */
static void set_home(const struct up *u) {
    char home[CLUSTER_PATH_MAX];
    snprintf(home, sizeof home, "%s", u->folder);
    *strrchr(home, '/') = '\0';
    setenv("STORM_HOME", home, 1);
}

/* The manager and commands read copies in the cluster's folder; the files may be edited for the next time meanwhile. */
static int take_nodespec(struct up *u) {
    char why[NODESPEC_WHY_MAX];
    struct nodespec spec = {0};
    int r = nodespec_load(&u->cluster, u->attribs, u->nodespec, &spec, why);
    u->cluster.widths = nodespec_widest(&spec) > 0;
    nodespec_free(&spec);
    if (r < 0)
        return complain("up", "%s", why);
    r = nodespec_keep(u->folder, u->attribs, u->nodespec);
    return r < 0 ? complain("up", "%s/nodespec: %s", u->folder, strerror(-r)) : 0;
}

/* Keys of a cluster stay for its next time. */
static int make_keys(const struct up *u) {
    char why[256];
    if (!u->cluster.sealed)
        return STATUS_OK;
    int r = keys_make(u->folder, u->cluster.nodes, why);
    if (r == 0 && has_hosts(u) && (r = keys_renew(u->folder)) < 0)
        snprintf(why, sizeof why, "generations: %s", strerror(-r));
    if (r == 0)
        return STATUS_OK;
    complain(u->name, "%s", why);
    return STATUS_STORM;
}

/* Of a cluster of this name that had some. */
static void forget_hosts(const struct up *u) {
    char path[CLUSTER_PATH_MAX];
    if (hosts_path(u->folder, path, sizeof path) == 0)
        unlink(path);
}

static struct watch_config configure(struct up *u, struct in_addr host) {
    struct watch_config w = {.folder = u->folder,
                             .name = u->name,
                             .count = u->cluster.nodes,
                             .manager = true,
                             .links = u->cluster.links,
                             .host = host,
                             .asks = u->cluster.asks,
                             .sealed = u->cluster.sealed,
                             .lease_ns = PLAN_LEASE_NS,
                             .confine = u->confines,
                             .pes = (uint32_t)u->pes,
                             .system_cores = (uint32_t)u->system_cores,
                             .announce = announce,
                             .scribe = write_down,
                             .context = u};
    if (has_hosts(u)) {
        w.count = 0;
        w.at = u->hosting.at;
        w.port_first = u->hosting.port_first;
        w.port_last = u->hosting.port_last;
        w.tender = tend;
    }
    w.prim = plan_prim(u->cluster.nodes, u->shape, PRIM_PERIOD_NS);
    return w;
}

static int find_programs(const struct up *u, struct watch_config *w) {
    int r = find_program("storm-mm", w->manager_program);
    r = r != 0 ? r : find_program("storm-pl", w->launcher_program);
    if (r == 0 && strcmp(u->launchers, "process") == 0)
        r = find_program("storm-each", w->each_program);
    return r;
}

static int launch(struct up *u, int claim) {
    struct in_addr host = plan_draw_host();
    struct watch_trouble trouble;
    describe(u, host);
    int status = has_hosts(u) ? hosting_number(&u->hosting, &u->cluster, u->folder) : 0;
    if (status != 0)
        return status;
    forget_hosts(u);
    struct roster roster = cluster_roster(&u->cluster);
    struct watch_config w = configure(u, host);
    w.roster = &roster;
    status = take_nodespec(u);
    status = status != 0 ? status : make_keys(u);
    status = status != 0 ? status : find_programs(u, &w);
    if (status == 0 && has_hosts(u))
        status = hosting_prepare(&u->hosting, &u->cluster, u->folder);
    if (status != 0)
        return status;
    if (getrandom(w.key, sizeof w.key, 0) != sizeof w.key)
        return STATUS_STORM;
    memcpy(u->cluster.key, w.key, sizeof w.key);
    status = state_check(u->name, u->folder, w.manager_program);
    if (status != 0)
        return status;
    remains_folder(u->folder); /* a cluster that crashed may have left something */
    remains_forget(u->folder);
    set_home(u);
    if (watch_launch(&w, claim, &trouble) < 0) {
        complain(u->name, "%s (log: %s/log)", trouble.words, u->folder);
        return STATUS_STORM;
    }
    return STATUS_OK;
}

/* ---- waiting ---- */

static void show_progress(const struct up *u, const struct cluster_row *row) {
    char words[80];
    snprintf(words, sizeof words, "cluster %s: %" PRIu32 " of %" PRIu32 " nodes", u->name, row->up,
             row->nodes);
    terminal_progress(words);
}

/* Until all nodes are there, or none comes any more. */
static bool await_nodes(struct up *u, struct cluster_row *row) {
    struct claim_holder holder;
    struct pulse *p = pulse_new(&u->cluster);
    uint32_t most = 0;
    uint64_t until = clock_ns() + FIRST_NS;
    bool up = false;
    while (p != NULL && !up && clock_ns() < until && claim_look(u->folder, &holder) == 1 &&
           !pulse_other(p, &u->other) && !foreground_asked()) {
        struct cluster_row now;
        if (!pulse_ask(p, clock_ns() + NS_PER_S, &now))
            continue;
        if (row->nodes == 0 || now.up > most)
            until = clock_ns() + PATIENCE_NS;
        *row = now;
        most = now.up > most ? now.up : most;
        up = now.nodes > 0 && now.up == now.nodes;
        show_progress(u, &now);
        if (!up)
            pulse_rest(p, ASK_NS);
    }
    terminal_progress(NULL);
    pulse_free(p);
    return up;
}

/* The last that a daemon has said. */
static void last_words(const struct up *u, char out[160]) {
    char path[CLUSTER_PATH_MAX + 8], line[160];
    snprintf(path, sizeof path, "%s/log", u->folder);
    snprintf(out, 160, "nothing");
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strstr(line, " storm-watch: ") == NULL && line[0] != '\n')
            snprintf(out, 160, "%.*s", (int)strcspn(line, "\n"), line);
    if (f != NULL)
        fclose(f);
}

static int told_to_end(const struct up *u) {
    complain(u->name, "it was told to end before it was up");
    return STATUS_STORM;
}

static int too_long(const struct up *u, const struct cluster_row *row) {
    struct claim_holder holder;
    char words[160];
    last_words(u, words);
    if (foreground_asked())
        return told_to_end(u);
    if (u->other.protocol != 0)
        return contact_other(u->name, &u->other, "end it with storm down, and bring it up again");
    if (claim_look(u->folder, &holder) != 1)
        complain(u->name, "it has ended again; its log says why: %s/log", u->folder);
    else if (row->nodes == 0)
        complain(u->name,
                 "its manager does not answer; the log's last words: %s; end it: storm down "
                 "(log: %s/log)",
                 words, u->folder);
    else
        complain(u->name, "only %" PRIu32 " of %" PRIu32 " nodes came up; see %s/log", row->up,
                 row->nodes, u->folder);
    return STATUS_STORM;
}

static const char *guarantee_words(const char *guarantee) {
    if (strcmp(guarantee, "cgroup") == 0)
        return "processes of a job are held together by control groups: none escapes";
    if (strcmp(guarantee, "namespace") == 0)
        return "processes of a job are held together by pid namespaces: none escapes";
    return "neither control groups nor pid namespaces: processes of a job are held together by their "
           "launcher, and one that hides may escape (see storm doctor)";
}

static uint64_t count_pes(const struct up *u, uint32_t nodes) {
    const struct cluster *c = &u->cluster;
    char why[NODESPEC_WHY_MAX];
    struct nodespec spec;
    uint64_t sum = (uint64_t)nodes * c->pes;
    if (!c->widths)
        return sum;
    if (nodespec_load_kept(c, u->folder, &spec, why) == 0)
        for (uint32_t i = 0; i < spec.nodes; i++)
            if (nodespec_width(&spec, i) > 0 && (c->hosts == NULL || roster_taken(c->hosts, i)))
                sum += (uint64_t)nodespec_width(&spec, i) - c->pes;
    nodespec_free(&spec);
    return sum;
}

static void say_up(const struct up *u, const char *how, uint32_t nodes) {
    const struct cluster *c = &u->cluster;
    uint64_t ns = clock_ns() - u->begin_ns, pes = count_pes(u, nodes);
    printf("storm: cluster %s %s: %" PRIu32 " node%s, %" PRIu64 " processor%s", c->name, how, nodes,
           nodes == 1 ? "" : "s", pes, pes == 1 ? "" : "s");
    if (strcmp(how, "is up") == 0)
        printf(" (%" PRIu64 ".%02" PRIu64 " s)", ns / NS_PER_S, ns % NS_PER_S / (10 * NS_PER_MS));
    putchar('\n');
    if (!u->verbose)
        return;
    printf("folder: %s\ntree: %s, links: %s, watcher: process %d\n%s\n", u->folder, c->tree,
           transport_name(c->links), (int)c->watcher, guarantee_words(c->guarantee));
}

/* ---- one that runs ---- */

/* Its file is there a moment after the claim is taken. */
static int load_running(struct up *u) {
    struct cluster_trouble trouble;
    struct claim_holder holder;
    uint64_t until = clock_ns() + PATIENCE_NS;
    int r = cluster_load(&u->cluster, u->folder, &trouble);
    while (r == -ENOENT && clock_ns() < until && claim_look(u->folder, &holder) == 1) {
        struct timespec moment = {.tv_nsec = (long)ASK_NS};
        nanosleep(&moment, NULL);
        r = cluster_load(&u->cluster, u->folder, &trouble);
    }
    return r;
}

static bool differs(const struct up *u, const struct cluster *wanted, bool pes_said) {
    return (u->local > 0 && (u->local != wanted->nodes || wanted->hosts != NULL)) ||
           (pes_said && u->pes != wanted->pes);
}

/* Whoever asks for hosts means these: some may not belong to it. 0, or the exit status after a complaint. */
static int compare_hosts(const struct up *u) {
    const struct roll *roll = &u->hosting.roll;
    uint32_t number;
    for (uint32_t i = 0; has_hosts(u) && i < roll->count; i++) {
        if (u->cluster.hosts == NULL)
            complain(u->name, "it runs already, of virtual nodes on this machine; end it first "
                              "(storm down), or bring up another (--cluster NAME)");
        else if (!roster_find(u->cluster.hosts, roll->names[i], &number))
            complain(u->name, "it runs already, without %s; see: storm add", roll->names[i]);
        else
            continue;
        return STATUS_STORM;
    }
    return 0;
}

/* Some of its hosts may never come. */
static bool ask_once(const struct up *u, struct cluster_row *row) {
    struct pulse *p = pulse_new(&u->cluster);
    bool answers = p != NULL && pulse_ask(p, clock_ns() + FIRST_NS, row);
    pulse_free(p);
    return answers;
}

static int already(struct up *u, bool pes_said) {
    struct cluster_row row = {0};
    int r = load_running(u);
    if (r < 0) {
        complain(u->name, "it runs but its file cannot be read: %s; end it: storm down",
                 strerror(-r));
        return STATUS_STORM;
    }
    if (differs(u, &u->cluster, pes_said)) {
        complain(u->name,
                 "it runs already, with %" PRIu32 " nodes of %" PRIu32
                 " processors; end it first (storm down), or bring up another (--cluster NAME)",
                 u->cluster.nodes, u->cluster.pes);
        return STATUS_STORM;
    }
    r = compare_hosts(u);
    if (r != 0)
        return r;
    bool fine = u->cluster.hosts != NULL ? ask_once(u, &row) : await_nodes(u, &row);
    if (!fine)
        return too_long(u, &row);
    if (u->foreground) {
        complain(u->name, "it runs already, and somebody else's; end it first: storm down");
        return STATUS_STORM;
    }
    say_up(u, "runs already", u->cluster.hosts != NULL ? row.up : u->cluster.nodes);
    return STATUS_OK;
}

/* At least so many must be there; the others may still come. */
static int await_hosts(const struct up *u) {
    const struct hosting *h = &u->hosting;
    uint64_t wanted = h->min_nodes != 0 ? h->min_nodes : 1;
    uint32_t there = hosting_await(h, &u->cluster, u->folder);
    if (foreground_asked())
        return told_to_end(u);
    say_up(u, "is up", there);
    if (there >= wanted)
        return STATUS_OK;
    complain(u->name,
             "only %" PRIu32 " of %" PRIu32 " hosts came up, and %" PRIu64
             " were asked for; the others are tried again until storm down",
             there, h->roll.count, wanted);
    return STATUS_STORM;
}

/* One that we are only logged in to. */
static int bring_up(struct up *u, bool pes_said) {
    struct cluster_row row = {0};
    struct cluster_trouble trouble;
    if (cluster_folder_is_elsewhere(u->folder)) {
        complain(u->name,
                 "it was brought up on another machine; choose another name: --cluster NAME");
        return STATUS_STORM;
    }
    int r = make_folder(u);
    if (r < 0) {
        complain(u->folder, "%s; set STORM_HOME to a folder of yours", strerror(-r));
        return STATUS_STORM;
    }
    int claim = claim_take(u->folder);
    if (claim == -EBUSY)
        return already(u, pes_said);
    if (claim < 0) {
        complain(u->folder, "%s", strerror(-claim));
        return STATUS_STORM;
    }
    if (u->foreground)
        foreground_prepare();
    int status = launch(u, claim);
    close(claim);
    if (status != STATUS_OK)
        return status;
    cluster_free(&u->cluster);
    bool fine = cluster_load(&u->cluster, u->folder, &trouble) == 0;
    if (fine && has_hosts(u)) {
        status = await_hosts(u);
    } else if (fine && await_nodes(u, &row)) {
        say_up(u, "is up", u->cluster.nodes);
    } else {
        status = too_long(u, &row);
    }
    if (u->foreground && status != STATUS_OK) /* nobody would look after it */
        down_cluster(u->name, u->folder, false);
    return u->foreground && status == STATUS_OK ? foreground_stay(u->name, u->folder) : status;
}

static const struct option *options_of(struct up *u, const char **asked) {
    static struct option table[40];
    const struct option all[] = {
        {"local", OPTION_NUMBER, &u->local, "N", "nodes (default: one a processor)"},
        {"hosts", OPTION_TEXT, &u->hosting.list, "HOSTS",
         "machines to be nodes: h[0-31],gate,@FILE"},
        {"min-nodes", OPTION_NUMBER, &u->hosting.min_nodes, "N",
         "fewer hosts than that are a failure (default 1)"},
        {"max-nodes", OPTION_NUMBER, &u->hosting.max_nodes, "N",
         "that there can be, with those that storm add brings"},
        {"connector", OPTION_TEXT, &u->hosting.connector, "WORDS",
         "how hosts are reached, instead of ssh: as for storm exec"},
        {"connect-timeout", OPTION_DURATION, &u->hosting.tender.connect_ns, "TIME",
         "give a host up for now; 10s if not given"},
        {"user", OPTION_TEXT, &u->hosting.user, "NAME", "to log in as, with ssh"},
        {"interface", OPTION_TEXT, &u->hosting.interface, "NAME|IP",
         "where daemons listen (default: by which hosts are reached)"},
        {"ports", OPTION_TEXT, &u->hosting.ports, "A-B",
         "that they listen at (default 20000-20999)"},
        {"node-folder", OPTION_TEXT, &u->hosting.folder, "PATH",
         "where nodes live on hosts (default /tmp/storm-UID)"},
        {"pes", OPTION_NUMBER, &u->pes, "P",
         "processors of each node (default 1; of hosts: as many as here)"},
        {"tree", OPTION_TEXT, &u->tree, "SHAPE",
         "k-ary:16, binomial, chain, flat (default: by size)"},
        {"links", OPTION_TEXT, &u->links, "KIND",
         "unix, tcp, or tls: sealed (default: unix; with --hosts tls)"},
        {"cluster", OPTION_TEXT, asked, "NAME", "its name (default: STORM_CLUSTER, or local)"},
        {"policy", OPTION_TEXT, &u->policy, "P",
         "who starts when: fcfs (default), easy, gang ... or a file; see: storm policy --help"},
        {"quantum", OPTION_DURATION, &u->quantum_ns, "T",
         "of turns, where jobs share processors (default 50ms)"},
        {"mpl", OPTION_NUMBER, &u->mpl, "N",
         "jobs that share a processor at most, if they do (default 4)"},
        {"launchers", OPTION_TEXT, &u->launchers, "WHICH",
         "one a node (default), or one a process"},
        {"confine", OPTION_TEXT, &u->confine, "HOW",
         "what holds a job together: cgroup, namespace, none (default: the best there is)"},
        {"system-cores", OPTION_NUMBER, &u->system_cores, "N",
         "the first N cores of a node are not for jobs (default 0)"},
        {"orphan", OPTION_DURATION, &u->orphan_ns, "T",
         "a job whose command is gone for so long is ended (default 30s)"},
        {"vacate", OPTION_DURATION, &u->vacate_ns, "T",
         "hosts that are lent and wanted back are ended so much later (default 10s)"},
        {"hosts-each", OPTION_NUMBER, &u->hosts_each, "N",
         "a job that grows has so many hosts at most (default: any number)"},
        {"hosts-all", OPTION_NUMBER, &u->hosts_all, "N", "the same of all jobs together"},
        {"fabric", OPTION_TEXT, &u->fabric, "F", "by which files go: as for storm cp"},
        {"bandwidth", OPTION_TEXT, &u->bandwidth, "RATE",
         "of a node's link: 10Gbit; files spread as suits it"},
        {"hook", OPTION_TEXT, &u->hook, "PROGRAM",
         "run with NODE down|up when a node goes or comes"},
        {"attribs", OPTION_TEXT, &u->attribs, "FILE",
         "what nodes are told apart by, lines such as: CPU =,>=,<= 500MHZ 1GHZ 2GHZ"},
        {"nodespec", OPTION_TEXT, &u->nodespec, "FILE",
         "what nodes are like, lines such as: n[0-31] switch=s1"},
        {"share", OPTION_TEXT, &u->share, "WHAT",
         "pes: jobs share nodes (default); nodes: a node serves one job at a time"},
        {"foreground", OPTION_FLAG, &u->foreground, NULL,
         "stay until it ends; SIGTERM ends it as storm down does"},
        {"verbose,v", OPTION_FLAG, &u->verbose, NULL, "more about it"},
        {0}};
    _Static_assert(sizeof all <= sizeof table, "room for all");
    memcpy(table, all, sizeof all);
    return table;
}

int up_main(int argc, char **argv) {
    static struct up u;
    u = (struct up){.policy = "fcfs",
                    .mpl = POLICY_UNSAID,
                    .quantum_ns = POLICY_UNSAID,
                    .launchers = "node",
                    .confine = "auto",
                    .begin_ns = clock_ns()};
    const char *asked = NULL;
    const struct option *table = options_of(&u, &asked);
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("up", "what is \"%s\" for? leave it out", argv[1]);
    bool pes_said = u.pes != 0;
    u.name = cluster_pick(asked);
    int r = check(&u);
    if (r == 0)
        r = bring_up(&u, pes_said);
    cluster_free(&u.cluster);
    hosts_free(&u.hosting.hosts);
    return r;
}
