/* SPDX-License-Identifier: MIT */
/* The hosts of a cluster that is being brought up: see hosting.h. */
#include "cli/hosting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/complain.h"
#include "cli/down.h"
#include "cli/foreground.h"
#include "cli/pulse.h"
#include "cli/slim.h"
#include "cli/terminal.h"
#include "cli/turnout.h"
#include "client/hostsfile.h"
#include "os/claim.h"
#include "os/companion.h"
#include "os/files.h"
#include "os/loop.h"
#include "os/plan.h"

/* Slurm kills what a step leaves behind, so remote shells stay; only this machine can start steps. */
#define SLURM_CONNECTOR "srun --overlap --quiet -N1 -n1 -w %h sh -c %c"

#define PORTS_USUAL "20000-20999"

/* Numbers that are kept for hosts that are added later; hosts that are looked up to find out where we are. */
enum { MORE_HOSTS = 16, LOOKED_UP_MAX = 8 };

/* Between looks at the file in which the tender says what has become of hosts; for the next of them to change. */
#define LOOK_NS     (20 * NS_PER_MS)
#define PATIENCE_NS (90 * NS_PER_S)
#define JOIN_NS     (25 * NS_PER_S) /* by then the tender has noticed who does not come */

/* ---- which hosts ---- */

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* "72(x2),36": processors of each of two nodes, then of one. The least of them: nodes are alike to us. */
static uint32_t least_processors(const char *text) {
    unsigned long least = 0;
    for (const char *at = text; at != NULL && *at != '\0';) {
        unsigned long n = strtoul(at, NULL, 10);
        least = least == 0 || n < least ? n : least;
        at = strchr(at, ',');
        at = at != NULL ? at + 1 : NULL;
    }
    return least <= UINT16_MAX ? (uint32_t)least : 0;
}

static void find_slurm(struct hosting *h) {
    h->list = variable("SLURM_JOB_NODELIST");
    if (h->list == NULL)
        return;
    h->source = "SLURM_JOB_NODELIST";
    h->pes = least_processors(variable("SLURM_JOB_CPUS_PER_NODE"));
    if (h->connector != NULL || variable("STORM_CONNECTOR") != NULL)
        return;
    h->connector = SLURM_CONNECTOR;
    h->tender.shape = HOP_FLAT;
    h->tender.stay = true;
}

static void find_pbs(struct hosting *h) {
    static char list[4096];
    const char *file = variable("PBS_NODEFILE");
    if (file == NULL || snprintf(list, sizeof list, "@%s", file) >= (int)sizeof list)
        return;
    h->list = list;
    h->source = "PBS_NODEFILE";
}

void hosting_find(struct hosting *h, bool local) {
    h->source = h->list != NULL ? "--hosts" : NULL;
    if (h->list != NULL || local)
        return;
    h->list = variable("STORM_HOSTS");
    if (h->list != NULL)
        h->source = "STORM_HOSTS";
    if (h->list == NULL)
        find_slurm(h);
    if (h->list == NULL)
        find_pbs(h);
}

/* ---- where we are ---- */

/* Looks a name up; a user before it is ssh's. */
static bool resolve(const char *host, int family, struct address *ret) {
    struct addrinfo want = {.ai_family = family, .ai_socktype = SOCK_STREAM}, *found = NULL;
    const char *at = strrchr(host, '@');
    if (getaddrinfo(at != NULL ? at + 1 : host, NULL, &want, &found) != 0)
        return false;
    bool fits = found->ai_addrlen <= sizeof ret->in6;
    if (fits) {
        *ret = (struct address){.len = found->ai_addrlen};
        memcpy(&ret->any, found->ai_addr, found->ai_addrlen);
    }
    freeaddrinfo(found);
    return fits;
}

/* The first host that has an address tells which of ours it sees; if none has, whoever is far away does. IPv4 has multicast, by
 * which gangs are switched at once. */
static int look_around(struct hosting *h) {
    static const int families[] = {AF_INET, AF_INET6};
    static const char *const far[] = {"192.0.2.1", "2001:db8::1"}; /* nobody's */
    struct address there;
    for (int f = 0; f < 2; f++)
        for (uint32_t i = 0; i < h->roll.count && i < LOOKED_UP_MAX; i++)
            if (resolve(h->roll.names[i], families[f], &there) &&
                address_towards(&there, &h->at) == 0)
                return 0;
    for (int f = 0; f < 2; f++)
        if (address_of_interface(&there, far[f], families[f]) == 0 &&
            address_towards(&there, &h->at) == 0)
            return 0;
    return complain("up", "which address do hosts see this machine at? say --interface");
}

static int find_address(struct hosting *h) {
    snprintf(h->tender.listen, sizeof h->tender.listen, "-");
    if (h->interface == NULL)
        return look_around(h);
    int r = address_of_interface(&h->at, h->interface, AF_UNSPEC);
    if (r == -ENODEV)
        return complain("up", "--interface %s: there is none of that name, and it is no address",
                        h->interface);
    if (r < 0)
        return complain("up", "--interface %s: it has no address", h->interface);
    bool name = if_nametoindex(h->interface) != 0;              /* eth0.100 is one */
    if (name && strlen(h->interface) < sizeof h->tender.listen) /* hosts use theirs */
        snprintf(h->tender.listen, sizeof h->tender.listen, "%s", h->interface);
    return 0;
}

static int read_ports(struct hosting *h) {
    uint64_t first = 0, last = 0;
    const char *text = h->ports != NULL ? h->ports : PORTS_USUAL;
    int n = text_scan_u64(text, &first), more = 0;
    if (n > 0 && text[n] == '-')
        more = text_scan_u64(text + n + 1, &last);
    if (more <= 0 || text[n + 1 + more] != '\0' || first < 1 || last > UINT16_MAX || first > last)
        return complain("up", "--ports %s: two numbers, such as " PORTS_USUAL, text);
    h->port_first = (uint16_t)first;
    h->port_last = (uint16_t)last;
    return 0;
}

static int read_capacity(struct hosting *h) {
    uint64_t usual =
        h->roll.count + (h->roll.count / 4 > MORE_HOSTS ? h->roll.count / 4 : MORE_HOSTS);
    uint64_t most = h->max_nodes != 0 ? h->max_nodes : usual;
    if (h->roll.count > PLAN_NODES_MAX)
        return complain("up", "those are %" PRIu32 " hosts; at most %d can be", h->roll.count,
                        PLAN_NODES_MAX);
    if (h->max_nodes != 0 && (most < h->roll.count || most > PLAN_NODES_MAX))
        return complain("up", "--max-nodes %" PRIu64 ": give %" PRIu32 " to %d", most,
                        h->roll.count, PLAN_NODES_MAX);
    if (h->min_nodes > h->roll.count)
        return complain("up", "--min-nodes %" PRIu64 ": there are only %" PRIu32 " hosts",
                        h->min_nodes, h->roll.count);
    h->capacity = (uint32_t)(most < PLAN_NODES_MAX ? most : PLAN_NODES_MAX);
    return 0;
}

/* It stands in lines for shells, one of which removes what is in it: only what means the same everywhere. */
static bool is_plain_path(const char *path) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@,:=";
    return path[0] == '/' && path[strspn(path, plain)] == '\0' && strlen(path) <= 300;
}

int hosting_check(struct hosting *h) {
    if (h->folder != NULL && !is_plain_path(h->folder))
        return complain("up",
                        "--node-folder %s: give the whole path of a folder, of letters, digits and "
                        "/._-+@,:= only",
                        h->folder);
    int r = roll_read(&h->roll, "up", h->list, NULL);
    r = r != 0 ? r : read_capacity(h);
    r = r != 0 ? r : read_ports(h);
    r = r != 0 ? r : reach_connector(&h->tender.reach, "up", h->connector, h->user);
    r = r != 0 ? r : reach_helper(&h->tender.reach, "up");
    return r != 0 ? r : find_address(h);
}

/* ---- who has which number ---- */

/* Hosts where something may be left. -EBADMSG: where, or how they are reached, is not what it is to be now. */
static int read_former(const struct hosting *h, const struct cluster *c, const char *folder,
                       struct hosts *ret) {
    static struct tender_config old;
    struct cluster before;
    struct cluster_trouble trouble;
    char path[CLUSTER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/" TENDER_BERTHS, folder);
    if (access(path, F_OK) < 0)
        return hosts_init(ret, c->nodes);
    *ret = (struct hosts){0};
    if (tender_load(&old, folder, &before) < 0 ||
        !bytes_equal(old.reach.connector, h->tender.reach.connector) ||
        strcmp(before.node_folder, c->node_folder) != 0)
        return -EBADMSG;
    return hosts_read(ret, c->nodes, path, &trouble);
}

/* -ERANGE: there is no room for all beside those who were there. */
static int give_numbers(struct hosting *h, const struct hosts *former) {
    hosts_free(&h->hosts);
    int r = hosts_init(&h->hosts, h->capacity);
    for (uint32_t i = 0; i < h->roll.count && r == 0; i++) {
        uint16_t crate = h->roll.crates[i];
        const char *name = h->roll.names[i];
        r = hosts_add(&h->hosts, hosts_room(&h->hosts, former, name), name,
                      crate > 0 ? h->roll.switches[crate - 1] : NULL);
        if (r < 0 && r != -ERANGE)
            complain("up", "%s: %s", name,
                     r == -EINVAL ? "this cannot be the name of a node" : strerror(-r));
    }
    return r;
}

static int end_former(const struct cluster *c, const char *folder) {
    if (down_forsaken(c->name, folder) == 0) {
        hosting_forget(folder, true);
        return 0;
    }
    complain(
        c->name,
        "hosts of its former life could not be ended, and are not to be forgotten; end them first "
        "(storm down), or bring up another (--cluster NAME)");
    return STATUS_STORM;
}

int hosting_number(struct hosting *h, struct cluster *c, const char *folder) {
    struct hosts former;
    int r = read_former(h, c, folder, &former);
    r = r < 0 ? r : give_numbers(h, &former);
    hosts_free(&former);
    if (r == -EBADMSG || r == -ERANGE) {
        int status = end_former(c, folder);
        if (status != 0)
            return status;
        r = hosts_init(&former, c->nodes);
        r = r < 0 ? r : give_numbers(h, &former);
        hosts_free(&former);
    }
    if (r == 0)
        c->hosts = hosts_roster(&h->hosts, c->prefix, &r, NULL);
    return r < 0 ? STATUS_STORM : 0;
}

/* ---- what is written ---- */

void hosting_describe(const struct hosting *h, struct cluster *c) {
    char usual[64];
    snprintf(usual, sizeof usual, "/tmp/storm-%u", (unsigned)geteuid());
    c->nodes = c->root = h->capacity;
    c->links = TRANSPORT_TCP;
    c->port_first = h->port_first;
    c->port_last = h->port_last;
    snprintf(c->node_folder, sizeof c->node_folder, "%s/%s", h->folder != NULL ? h->folder : usual,
             c->name);
}

static int write_hosts(const struct hosting *h, const char *folder) {
    char path[CLUSTER_PATH_MAX];
    int r = hosts_path(folder, path, sizeof path);
    return r < 0 ? r : hosts_write(&h->hosts, path);
}

/* Copies of the programs that every host gets. They are taken now: the next release may be installed while we run. */
static int copy_programs(const char *folder) {
    static const char *const names[] = {"storm", "storm-pl"};
    char from[CLUSTER_PATH_MAX], to[CLUSTER_PATH_MAX + 32];
    snprintf(to, sizeof to, "%s/bin", folder);
    int r = mkdir(to, 0700) < 0 && errno != EEXIST ? -errno : 0;
    for (int i = 0; i < 2 && r == 0; i++) {
        r = i == 0 ? companion_self(from, sizeof from)
                   : companion_find(names[i], from, sizeof from);
        snprintf(to, sizeof to, "%s/bin/%s", folder, names[i]);
        r = r < 0 ? r : slim_copy(from, to);
    }
    return r;
}

int hosting_prepare(struct hosting *h, const struct cluster *c, const char *folder) {
    static const char *const old[] = {"muster", TENDER_ENDING, TENDER_ENDED};
    char path[CLUSTER_PATH_MAX + 16];
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, old[i]);
        unlink(path);
    }
    h->tender.folder = folder;
    int r = write_hosts(h, folder);
    r = r < 0 ? r : copy_programs(folder);
    r = r < 0 ? r : tender_save(&h->tender, c);
    if (r == 0)
        return 0;
    complain("up", "%s: %s", folder, strerror(-r));
    return STATUS_STORM;
}

void hosting_forget(const char *folder, bool all) {
    static const char *const files[] = {"muster", TENDER_ENDING, TENDER_ENDED, TENDER_WORDS,
                                        TENDER_BERTHS};
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t count = sizeof files / sizeof *files - (all ? 0 : 2);
    for (size_t i = 0; fd >= 0 && i < count; i++)
        unlinkat(fd, files[i], 0);
    if (fd >= 0)
        files_remove(fd, "bin");
    if (fd >= 0)
        close(fd);
}

/* ---- waiting ---- */

struct count {
    uint32_t up, failed, over;
};

/* What has become of the host that we mean, not of another that was there before. */
static enum turnout_state state_of(const struct hosting *h, const struct turnout *t, uint32_t i) {
    const char *name = h->hosts.at[i].name;
    return *name != '\0' && strcmp(t->at[i].name, name) == 0 ? t->at[i].state : TURNOUT_NONE;
}

static struct count count_hosts(const struct hosting *h, const struct turnout *t) {
    struct count c = {0};
    for (uint32_t i = 0; i < t->capacity; i++) {
        c.up += state_of(h, t, i) == TURNOUT_UP;
        c.failed += state_of(h, t, i) == TURNOUT_FAILED;
    }
    c.over = c.up + c.failed;
    return c;
}

static void show_progress(const struct hosting *h, const struct cluster *c, struct count now) {
    char words[128];
    snprintf(words, sizeof words, "cluster %s: %" PRIu32 " of %" PRIu32 " hosts%s", c->name, now.up,
             h->roll.count, now.failed > 0 ? ", some failed" : "");
    terminal_progress(words);
}

static void name_failed(const struct hosting *h, const struct turnout *t) {
    for (uint32_t i = 0; i < t->capacity; i++)
        if (state_of(h, t, i) == TURNOUT_FAILED)
            complain(t->at[i].name, "%s", t->at[i].words);
}

/* What has become of a host once is told, though it is tried again. */
static void merge(struct turnout *seen, const struct turnout *now) {
    for (uint32_t i = 0; i < seen->capacity; i++)
        if (now->at[i].state == TURNOUT_UP || now->at[i].state == TURNOUT_FAILED)
            seen->at[i] = now->at[i];
}

static void await_turnout(const struct hosting *h, const struct cluster *c, const char *folder,
                          struct pulse *p, struct turnout *seen) {
    struct claim_holder holder;
    struct turnout t;
    struct count now = {0};
    uint64_t until = clock_ns() + PATIENCE_NS;
    int r = turnout_init(&t, c->nodes);
    while (r == 0 && now.over < h->roll.count && clock_ns() < until &&
           claim_look(folder, &holder) == 1 && !foreground_asked()) {
        uint32_t before = now.over;
        pulse_rest(p, LOOK_NS);
        r = turnout_read(&t, folder);
        merge(seen, &t);
        now = count_hosts(h, seen);
        if (now.over != before)
            until = clock_ns() + PATIENCE_NS;
        show_progress(h, c, now);
    }
    turnout_free(&t);
}

/* Those that say they are up come to the manager a moment later; if not, the tender says so. */
static uint32_t await_joins(const struct hosting *h, const char *folder, struct pulse *p,
                            struct turnout *seen) {
    struct cluster_row row = {0};
    uint64_t until = clock_ns() + JOIN_NS;
    uint32_t wanted = count_hosts(h, seen).up;
    struct turnout t;
    int r = turnout_init(&t, seen->capacity);
    while (r == 0 && row.up < wanted && clock_ns() < until && !foreground_asked()) {
        if (pulse_ask(p, clock_ns() + NS_PER_S, &row) && row.up >= wanted)
            break;
        pulse_rest(p, LOOK_NS);
        r = turnout_read(&t, folder);
        merge(seen, &t);
        wanted = count_hosts(h, seen).up;
    }
    turnout_free(&t);
    return row.up < wanted ? row.up : wanted;
}

uint32_t hosting_await(const struct hosting *h, const struct cluster *c, const char *folder) {
    struct turnout seen;
    struct pulse *p = pulse_new(c);
    uint32_t there = 0;
    if (turnout_init(&seen, c->nodes) == 0 && p != NULL) {
        await_turnout(h, c, folder, p, &seen);
        there = await_joins(h, folder, p, &seen);
        terminal_progress(NULL);
        name_failed(h, &seen);
    }
    pulse_free(p);
    turnout_free(&seen);
    return there;
}
