/* SPDX-License-Identifier: MIT */
/* storm berth: a host becomes a node of a cluster, or ceases to be one. For `storm up --hosts`, not for people.
 *
 * All that it must know comes by its standard input (client/berthing.h). It says `ok`, or why not, and leaves a watcher with one
 * node behind; or it stays until it is told to end, where what a remote shell leaves behind is killed. Of the machine it
 * takes nothing for granted: no home, no PATH, no locale. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/footprints.h"
#include "cli/options.h"
#include "client/berthing.h"
#include "client/hostsfile.h"
#include "os/claim.h"
#include "os/companion.h"
#include "os/files.h"
#include "os/nest.h"
#include "os/plan.h"
#include "os/remains.h"
#include "os/store.h"
#include "os/watch.h"

enum { TEXT_MAX = 8 * 1024 * 1024 };

struct berth {
    char *text;
    struct berthing plan;
    char folder[BERTHING_PATH_MAX];
    struct cluster cluster; /* as it is told to whoever looks into the folder */
};

/* One line, which goes up the tree as it is. */
__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return STATUS_FAILED;
}

/* ---- what is wanted ---- */

static int read_text(struct berth *b) {
    size_t len = 0;
    ssize_t n = 0;
    b->text = calloc(1, TEXT_MAX);
    while (b->text != NULL && len < TEXT_MAX - 1 &&
           ((n = read(STDIN_FILENO, b->text + len, TEXT_MAX - 1 - len)) > 0 ||
            (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    if (b->text == NULL || n != 0)
        return fail("what it is to do cannot be read");
    b->text[len] = '\0';
    return 0;
}

static int take_plan(struct berth *b) {
    struct cluster_trouble trouble;
    int r = read_text(b);
    if (r != 0)
        return r;
    if (berthing_parse(&b->plan, b->text, &trouble) < 0)
        return fail("what it is to do is not understood: %s", trouble.words);
    b->cluster = b->plan.cluster;
    berthing_folder(&b->plan, b->folder);
    return 0;
}

/* ---- the folder ---- */

static int save(const struct berth *b, const char *name, struct bytes bytes) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : files_write(fd, bytes, 0);
    if (fd >= 0)
        close(fd);
    return r < 0 ? fail("%s: %s", path, strerror(-r)) : 0;
}

/* The node's former lives: a machine that was started anew has forgotten them. */
static int remember_lives(const struct berth *b) {
    char path[PATH_MAX];
    struct store s;
    snprintf(path, sizeof path, "%s/n%" PRIu32, b->folder, b->plan.self);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail("%s: %s", path, strerror(errno));
    int r = store_open(&s, path);
    if (r < 0)
        return fail("%s: %s", path, strerror(-r));
    r = store_raise(&s, b->plan.boots);
    store_close(&s);
    return r < 0 ? fail("%s: %s", path, strerror(-r)) : 0;
}

static int furnish(const struct berth *b) {
    remains_folder(b->folder); /* a former life may have left something */
    remains_forget(b->folder);
    footprints_note(b->folder, b->plan.helped);
    int r = save(b, "plan", bytes_from_str(b->text));
    r = r != 0 ? r : save(b, "hosts", b->plan.hosts);
    if (r == 0 && b->plan.key.len > 0)
        r = save(b, "node.key", b->plan.key);
    return r != 0 ? r : remember_lives(b);
}

/* ---- one that runs there already ---- */

/* The plan of a node of this cluster that is or was here; berthing_wipe() it. */
static char *read_plan(const char *folder) {
    char path[PATH_MAX], *text = calloc(1, TEXT_MAX);
    snprintf(path, sizeof path, "%s/plan", folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    long len =
        fd < 0 || text == NULL ? -1 : files_read(fd, room_of((uint8_t *)text, TEXT_MAX - 1), 0);
    if (fd >= 0)
        close(fd);
    if (len > 0)
        return text;
    berthing_wipe(text);
    return NULL;
}

static bool is_the_same(const struct berth *b) {
    char *text = read_plan(b->folder);
    bool same = text != NULL && berthing_same(b->text, text);
    berthing_wipe(text);
    return same;
}

/* A node that this host was before, under another number: it could not be ended when it was to leave. */
static bool is_former(const struct berth *b, const char *name, char folder[BERTHING_PATH_MAX]) {
    struct berthing other;
    struct cluster_trouble trouble;
    if (strspn(name, "0123456789") != strlen(name))
        return false;
    snprintf(folder, BERTHING_PATH_MAX, "%s/%.10s", b->cluster.node_folder, name);
    char *text = read_plan(folder);
    bool former = text != NULL && berthing_parse(&other, text, &trouble) == 0 &&
                  other.self != b->plan.self && strcmp(other.called, b->plan.called) == 0;
    berthing_wipe(text);
    return former;
}

static void end_former(struct berth *b) {
    char folder[BERTHING_PATH_MAX];
    DIR *dir = opendir(b->cluster.node_folder);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (is_former(b, e->d_name, folder) && watch_end(folder) == 0) {
            b->plan.helped = b->plan.helped || footprints_noted(folder);
            files_remove(dirfd(dir), e->d_name);
        }
    if (dir != NULL)
        closedir(dir);
}

/* The claim on the folder, or -EALREADY: all is as it should be. Whatever else runs there is of a former life, or does not
 * get through. */
static int claim(const struct berth *b) {
    int fd = claim_take(b->folder);
    if (fd != -EBUSY)
        return fd;
    if (!b->plan.anew && is_the_same(b))
        return -EALREADY;
    int r = watch_end(b->folder);
    return r < 0 ? r : claim_take(b->folder);
}

/* ---- starting ---- */

static int announce(void *context, const struct watch_news *news) {
    struct berth *b = context;
    b->cluster.watcher = news->watcher;
    snprintf(b->cluster.guarantee, sizeof b->cluster.guarantee, "%s", news->guarantee);
    return cluster_save(&b->cluster, b->folder);
}

static int find_address(const struct berth *b, struct address *ret) {
    const struct address *manager = &b->plan.cluster.manager;
    const char *name = b->plan.listen;
    char text[ADDRESS_TEXT_MAX];
    bool any = strcmp(name, "-") == 0;
    int r = any ? address_towards(manager, ret)
                : address_of_interface(ret, name, manager->any.sa_family);
    if (r == 0)
        return 0;
    address_format(manager, text, sizeof text);
    return any ? fail("there is no way to the manager at %s: %s", text, strerror(-r))
               : fail("interface %s: %s", name,
                      r == -ENODEV ? "there is none" : "it has no such address");
}

/* Names of all nodes, as they are now. */
static int read_names(const struct berth *b, struct roster **ret) {
    struct cluster_trouble trouble = {""};
    struct hosts hosts;
    char *text = strndup((const char *)b->plan.hosts.at, b->plan.hosts.len);
    int r = text == NULL ? -ENOMEM : hosts_parse(&hosts, b->cluster.nodes, text, &trouble);
    if (r == 0)
        *ret = hosts_roster(&hosts, b->cluster.prefix, &r, NULL);
    if (text != NULL)
        hosts_free(&hosts);
    free(text);
    return r < 0 ? fail("the list of hosts is not understood: %s", trouble.words) : 0;
}

static int configure(struct berth *b, struct watch_config *w) {
    const struct cluster *c = &b->cluster;
    struct tree tree;
    if (!plan_tree(c->tree, &tree) || !confine_parse(b->plan.confine, &w->confine))
        return fail("what it is to do is of another version of storm");
    w->system_cores = b->plan.system_cores;
    if (companion_find("storm-pl", w->launcher_program, sizeof w->launcher_program) < 0)
        return fail("storm-pl is not beside storm");
    int r = find_address(b, &w->at);
    if (r != 0)
        return r;
    if (w->at.any.sa_family == AF_INET)
        w->host = w->at.in.sin_addr;
    memcpy(w->key, c->key, sizeof w->key);
    w->prim = plan_prim(c->nodes, tree, PRIM_PERIOD_NS);
    return 0;
}

static int launch(struct berth *b, int fd) {
    struct watch_trouble trouble;
    struct roster *roster = NULL;
    struct watch_config w = {.folder = b->folder,
                             .name = b->cluster.name,
                             .first = b->plan.self,
                             .count = 1,
                             .links = TRANSPORT_TCP,
                             .asks = true,
                             .sealed = b->cluster.sealed,
                             .port_first = b->cluster.port_first,
                             .port_last = b->cluster.port_last,
                             .manager_at = b->cluster.manager,
                             .lease_ns = PLAN_LEASE_NS,
                             .pes = b->cluster.pes,
                             .announce = announce,
                             .context = b};
    int r = read_names(b, &roster);
    w.roster = roster;
    r = r != 0 ? r : configure(b, &w);
    if (r == 0 && watch_launch(&w, fd, &trouble) < 0)
        r = fail("%s", trouble.words);
    free(roster);
    return r;
}

/* It is in its file, and all processes that follow are forked from us. */
static void forget_key(struct berth *b) {
    size_t before = (size_t)((const char *)b->plan.key.at - b->text);
    explicit_bzero(b->text + before, b->plan.key.len);
}

/* Whoever could not begin leaves nothing. */
static int begin(struct berth *b) {
    char why[NEST_WHY_MAX];
    if (nest_make(b->folder, why) < 0)
        return fail("%s", why);
    end_former(b);
    int fd = claim(b);
    if (fd == -EALREADY)
        return 0;
    if (fd < 0)
        return fail("%s: %s", b->folder, strerror(-fd));
    int r = furnish(b);
    forget_key(b);
    r = r != 0 ? r : launch(b, fd);
    close(fd);
    if (r != 0)
        footprints_remove(b->cluster.node_folder, b->folder);
    return r;
}

/* ---- ending ---- */

/* Nothing of ours can be in a folder that is somebody else's, and nothing in it is touched. */
static int end(const char *base, const char *folder) {
    char why[NEST_WHY_MAX];
    int r = nest_look(base, why);
    if (r < 0 && r != -ENOENT)
        return fail("%s", why);
    r = watch_end(folder);
    if (r < 0 && r != -ENOENT)
        return fail("%s cannot be ended: %s", folder, strerror(-r));
    footprints_remove(base, folder);
    return 0;
}

/* Until its watcher has ended, or we are told to end it. */
static int stay(const struct berth *b, int signals) {
    struct claim_holder holder;
    int watcher = -1;
    if (watch_look(b->folder, &holder) == 1)
        watcher = (int)syscall(SYS_pidfd_open, holder.sweeper, 0);
    struct pollfd p[] = {{.fd = signals, .events = POLLIN}, {.fd = watcher, .events = POLLIN}};
    while (watcher >= 0 && poll(p, 2, -1) < 0 && errno == EINTR)
        continue;
    if (watcher >= 0)
        close(watcher);
    return end(b->cluster.node_folder, b->folder);
}

/* Before anything is begun: whoever started us may die, or tell us to end, meanwhile. */
static int open_signals(pid_t parent) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        raise(SIGTERM);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static int obey(struct berth *b) {
    pid_t parent = getppid();
    int r = take_plan(b);
    if (r != 0)
        return r;
    bool stays = b->plan.stay && !b->plan.end;
    int signals = stays ? open_signals(parent) : -1;
    r = b->plan.end ? end(b->cluster.node_folder, b->folder) : begin(b);
    if (r != 0)
        return r;
    puts("ok");
    fflush(stdout);
    return stays ? stay(b, signals) : 0;
}

static int end_folder(const char *folder) {
    char base[PATH_MAX];
    const char *slash = strrchr(folder, '/');
    if (*folder != '/' || slash == folder || slash[1] == '\0')
        return fail("--end %s: give the whole path of a node's folder", folder);
    snprintf(base, sizeof base, "%.*s", (int)(slash - folder), folder);
    return end(base, folder);
}

int berth_main(int argc, char **argv) {
    static struct berth b;
    const char *ended = NULL;
    const struct option table[] = {
        {"end", OPTION_TEXT, &ended, "FOLDER", "end the node whose folder this is"}, {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm berth [--end FOLDER]\n\n"
            "Makes this machine a node of a cluster, as its standard input says. For storm up --hosts.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count != 0)
        return count == OPTIONS_WRONG ? STATUS_USAGE : complain("berth", "it takes no arguments");
    umask(077);
    int r = ended != NULL ? end_folder(ended) : obey(&b);
    berthing_wipe(b.text);
    return r;
}
