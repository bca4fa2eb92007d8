/* SPDX-License-Identifier: MIT */
/* storm work: see work.h. Options, the folder, signals and the course of it. */
#include "cli/work.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/automatic.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/terminal.h"
#include "os/files.h"

/* A path that does not fit into the address of a socket; the server then listens on a port of this machine. */
enum { SOCKET_FOLDER_MAX = 88, FAILURES_MAX = 100, NAMES_MAX = 100000, BAR = 24 };
/* A worker that was lost may come again before it is missed. */
enum { SPARE_WORKERS = 64 };
#define PROGRESS_NS (NS_PER_S / 10)

extern char **environ;

/* ---- options ---- */

static const struct option *options_of(struct work_wish *o) {
    static struct option table[28];
    const struct option all[] = {
        {"file,f", OPTION_TEXT, &o->file, "FILE", "lines from here instead of standard input"},
        {"null,0", OPTION_FLAG, &o->zero, NULL, "they end with a zero byte, not with the line"},
        {"workers,n", OPTION_NUMBER, &o->workers, "N",
         "at most so many; otherwise one a processor"},
        {"jobs,j", OPTION_NUMBER, &o->workers, "N", "the same"},
        {"time,t", OPTION_DURATION, &o->limit_ns, "LIMIT", "each may take so long: 90, 1:30:00"},
        {"retries", OPTION_NUMBER, &o->retries, "N", "try one that fails so often again"},
        {"keep-going", OPTION_FLAG, &o->keep_going, NULL, "whatever fails (that is usual)"},
        {"halt", OPTION_FLAG, &o->halt, NULL, "end everything when one has failed"},
        {"keep-order,k", OPTION_FLAG, &o->ordered, NULL, "output as lines come (that is usual)"},
        {"unordered", OPTION_FLAG, &o->unordered, NULL, "show output as it comes"},
        {"json", OPTION_FLAG, &o->json, NULL, "an object for each line"},
        {"progress", OPTION_FLAG, &o->progress, NULL, "show how far it is, on a terminal"},
        {"joblog", OPTION_TEXT, &o->log, "FILE",
         "a line for each that has ended, as parallel has it"},
        {"resume", OPTION_TEXT, &o->resume, "NAME", "go on; what has ended is not run again"},
        {"resume-failed", OPTION_TEXT, &o->resume_failed, "NAME", "but what has failed is"},
        {"need", OPTION_TEXT, &o->need, "EXPR", "workers on nodes that have this: MEM>=512MB"},
        {"on,w", OPTION_TEXT, &o->on, "NODES", "workers only on these: n[0-3]"},
        {"exclude,x", OPTION_TEXT, &o->exclude, "NODES", "on none of these"},
        {"name", OPTION_TEXT, &o->name, "TEXT", "of the workers, shown by storm ps"},
        {"dry-run", OPTION_FLAG, &o->dry_run, NULL, "show the command lines, run nothing"},
        {"auto", OPTION_FLAG, &o->automatic, NULL, "bring a local cluster up if there is none"},
        {"cluster", OPTION_TEXT, &o->cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    _Static_assert(sizeof all <= sizeof table, "room for all");
    memcpy(table, all, sizeof all);
    return table;
}

static int help(const struct option *table) {
    puts(
        "usage: storm work [OPTIONS] < LINES\n"
        "       storm work [OPTIONS] COMMAND < VALUES\n"
        "       storm work [OPTIONS] COMMAND ::: VALUES... [::: VALUES... | :::: FILES...]\n"
        "\n"
        "Runs many command lines on the cluster, as many at a time as there are processors free, and\n"
        "shows the output of each as a whole, in the order of the lines. In a command {} is the value,\n"
        "{.} without extension, {/} without folder, {//} its folder, {#} the number of the line; {1},\n"
        "{2}: of several. Several ::: make all combinations.\n");
    options_print(table, stdout);
    puts(
        "\nThe exit status is the number of lines that failed, 101 if there are more than 100; 125 if\n"
        "storm could not.");
    return STATUS_OK;
}

/* ---- the folder ---- */

static bool good_name(const char *name) {
    return *name != '\0' && *name != '.' && strlen(name) < 48 && strchr(name, '/') == NULL;
}

/* The first number that nobody has. */
static int draw_name(struct work *w, int parent) {
    for (int i = 1; i < NAMES_MAX; i++) {
        snprintf(w->name, sizeof w->name, "%d", i);
        if (mkdirat(parent, w->name, 0700) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int take_name(struct work *w, int parent, const char *name) {
    snprintf(w->name, sizeof w->name, "%s", name);
    if (mkdirat(parent, name, 0700) == 0)
        return 0;
    w->found = errno == EEXIST;
    return w->found ? 0 : -errno;
}

/* CLUSTER/work */
static int open_parent(const struct work *w) {
    char cluster[CLUSTER_PATH_MAX];
    int r = cluster_folder(w->contact.cluster.name, cluster, sizeof cluster);
    int home = r == 0 ? open(cluster, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (r < 0 || home < 0)
        return r < 0 ? r : -errno;
    int parent = files_folder(home, "work", 0700);
    close(home);
    return parent;
}

static int open_book(struct work *w, int parent) {
    int folder = openat(parent, w->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int r = workbook_open(&w->book, folder, w->wish->resume_failed != NULL);
    w->ours = r == 0;
    if (w->ours)
        unlinkat(folder, "server", 0); /* where a former life was is of no use to anybody */
    close(folder);
    return r;
}

/* CLUSTER/work/NAME */
static int open_folder(struct work *w) {
    const char *name = w->wish->resume_failed != NULL ? w->wish->resume_failed : w->wish->resume;
    char cluster[CLUSTER_PATH_MAX] = "";
    int parent = open_parent(w);
    int r = parent < 0 ? parent : name != NULL ? take_name(w, parent, name) : draw_name(w, parent);
    (void)cluster_folder(w->contact.cluster.name, cluster, sizeof cluster);
    snprintf(w->folder, sizeof w->folder, "%s/work/%s", cluster, w->name);
    if (r == 0)
        r = open_book(w, parent);
    if (parent >= 0)
        close(parent);
    if (r == -EBUSY)
        complain("work", "another command is at work on %s; take another name", w->name);
    else if (r < 0)
        complain(w->folder, "%s", strerror(-r));
    return r < 0 ? STATUS_STORM : 0;
}

/* ---- beginning ---- */

/* Nodes of this machine reach a socket in the folder; others come over the network, as they come to the manager. */
static int choose_listen(const struct work *w, char out[ADDRESS_TEXT_MAX]) {
    const struct cluster *c = &w->contact.cluster;
    struct address a;
    out[0] = '\0';
    if (c->links == TRANSPORT_UNIX) {
        if (strlen(w->folder) >= SOCKET_FOLDER_MAX)
            snprintf(out, ADDRESS_TEXT_MAX, "tcp:127.0.0.1:0");
        return 0;
    }
    int r = address_towards(&c->manager, &a);
    if (r == 0)
        address_format(&a, out, ADDRESS_TEXT_MAX);
    return r;
}

/* What every command finds: this folder, this environment. To be freed. */
static uint8_t *make_setting(const struct work *w, size_t *ret_len) {
    char here[4096], *strings = NULL;
    size_t len = 0;
    uint8_t *setting = NULL;
    FILE *f = open_memstream(&strings, &len);
    if (f == NULL || getcwd(here, sizeof here) == NULL)
        return NULL;
    for (char **e = environ; *e != NULL; e++)
        fwrite(*e, 1, strlen(*e) + 1, f);
    if (fclose(f) == 0) {
        size_t cap = len + strlen(here) + 64;
        struct chore_setting s = {.limit_ns = w->wish->limit_ns,
                                  .folder = bytes_of(here, strlen(here) + 1),
                                  .environment = bytes_of(strings, len)};
        setting = malloc(cap);
        *ret_len = setting != NULL ? chore_setting_write(&s, room_of(setting, cap)) : 0;
    }
    free(strings);
    return setting;
}

static int open_office(struct work *w) {
    char listen[ADDRESS_TEXT_MAX];
    size_t len = 0;
    uint8_t *setting = make_setting(w, &len);
    int r = setting != NULL ? choose_listen(w, listen) : -ENOMEM;
    if (r < 0) {
        complain("work", "%s", strerror(-r));
    } else {
        r = office_open(&w->office, w->folder, listen, bytes_of(setting, len));
        if (r < 0)
            complain("work", "%s", w->office.why);
    }
    free(setting);
    return r < 0 ? STATUS_STORM : 0;
}

static void on_input(struct source *s, uint32_t events) {
    struct work *w = CONTAINER_OF(s, struct work, input);
    (void)events;
    int r = supply_read(&w->supply);
    if (r == 0 || w->status != 0)
        return;
    complain("work", "the lines cannot be read: %s", strerror(-r));
    w->status = STATUS_STORM;
}

static void on_signals(struct source *s, uint32_t events) {
    struct work *w = CONTAINER_OF(s, struct work, signals);
    struct signalfd_siginfo info;
    (void)events;
    while (read(s->fd, &info, sizeof info) == sizeof info) {
        if (w->signal != 0)
            _exit(STATUS_SIGNAL + (int)info.ssi_signo); /* whoever asks twice is not kept waiting */
        w->signal = (int)info.ssi_signo;
    }
}

static int watch_signals(struct work *w) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return loop_adopt(&w->contact.loop, &w->signals, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                      on_signals, EPOLLIN);
}

static void on_news(void *context, const struct message_news *n) {
    struct work *w = context;
    pilots_news(&w->pilots, n);
}

static void on_lost(void *context, enum session_loss why) {
    struct work *w = context;
    if (w->status == 0)
        w->status = contact_lost(&w->contact, why);
}

/* As many as there are processors, unless somebody says how many. */
static uint32_t count_workers(const struct work *w) {
    enum { WORKERS_MAX = 4096 };
    const struct cluster *c = &w->contact.cluster;
    uint64_t most = w->wish->workers > 0 ? w->wish->workers : (uint64_t)cluster_count(c) * c->pes;
    return most < WORKERS_MAX ? (uint32_t)most : WORKERS_MAX;
}

static int open_log(struct work *w) {
    int r = w->wish->log != NULL ? showing_open_log(&w->showing, w->wish->log) : 0;
    if (r < 0)
        complain(w->wish->log, "%s", strerror(-r));
    return r < 0 ? STATUS_STORM : 0;
}

static int begin(struct work *w) {
    const struct work_wish *o = w->wish;
    w->input = (struct source){.fd = w->supply.fd, .ready = on_input};
    w->pilots = (struct pilots){.contact = &w->contact,
                                .name = o->name != NULL ? o->name : "work",
                                .need = o->need,
                                .on = o->on,
                                .exclude = o->exclude,
                                .setting = w->office.setting,
                                .most = count_workers(w),
                                .sent = w->contact.cluster.hosts != NULL};
    office_init(&w->office, &w->contact.loop, w->pilots.most + SPARE_WORKERS);
    if (watch_signals(w) < 0)
        return STATUS_STORM;
    int r = open_folder(w);
    return r == 0 ? open_office(w) : r;
}

/* ---- the course of it ---- */

static void show_progress(struct work *w) {
    char words[160], bar[BAR + 1];
    uint64_t total = w->input_over ? w->supply.seq : supply_total(&w->supply);
    uint64_t now = w->contact.loop.now;
    if (!w->wish->progress || !terminal_is(stderr))
        return;
    loop_wake_at(&w->contact.loop, now + PROGRESS_NS);
    if (now < w->shown_at + PROGRESS_NS)
        return;
    w->shown_at = now;
    size_t full = total > 0 ? (size_t)(w->ended * BAR / total) : 0;
    memset(bar, '.', BAR);
    memset(bar, '#', full < BAR ? full : BAR);
    bar[BAR] = '\0';
    int len =
        snprintf(words, sizeof words, "[%s] %" PRIu64 " of %" PRIu64 "%s, %" PRIu32 " workers", bar,
                 w->ended, total > 0 ? total : w->supply.seq, total > 0 ? "" : " so far",
                 pilots_running(&w->pilots));
    if (w->failed > 0)
        snprintf(words + len, sizeof words - (size_t)len, ", %" PRIu64 " failed", w->failed);
    terminal_progress(words);
}

/* Shown first, then written down, then acknowledged. */
static int settle(struct work *w) {
    int r = work_write_down(w);
    if (r < 0)
        return r;
    r = office_say(&w->office);
    if (r < 0)
        complain("work", "%s", w->office.why);
    return r;
}

/* Nobody is left who could do what is to be done. */
static bool is_stranded(const struct work *w) {
    return w->open + w->again_count > 0 && pilots_gone(&w->pilots);
}

static int say_stranded(const struct work *w) {
    complain("work", "%s",
             w->pilots.trouble[0] != '\0' ? w->pilots.trouble : "all workers have been ended");
    return -EIO;
}

static int turn(struct work *w) {
    int r = work_feed(w);
    if (r == 0)
        r = settle(w);
    if (r < 0 || work_is_done(w))
        return r;
    if (pilots_want(&w->pilots, w->open) != 0)
        return -EIO;
    show_progress(w);
    session_turn(w->contact.session);
    pilots_settle(&w->pilots);
    r = office_hear(&w->office);
    if (r < 0)
        complain("work", "%s", w->office.why);
    if (r == 0)
        r = work_collect(w);
    return r == 0 && is_stranded(w) ? say_stranded(w) : r;
}

static void follow(struct work *w) {
    int r = 0;
    while (r == 0 && w->status == 0 && w->signal == 0 && !work_is_done(w) && !work_is_halted(w))
        r = turn(w);
    if (r == 0 && work_is_halted(w))
        work_show_rest(w);
    else if (r == 0 && work_is_done(w)) /* perhaps by a former life, which did not get to show it */
        r = work_collect(w);
    if (r == 0)
        r = settle(w);
    if (w->wish->progress)
        terminal_progress(NULL);
    if (r < 0 && w->status == 0)
        w->status = STATUS_STORM;
}

/* ---- the end ---- */

static void say_how_to_go_on(const struct work *w) {
    complain("work", "%" PRIu64 " lines have ended; go on with the same words and: --resume %s",
             w->ended, w->name);
}

static void say_failures(const struct work *w) {
    if (w->failed == 0)
        return;
    if (w->first_failed == 0)
        complain("work", "%" PRIu64 " of %" PRIu64 " lines failed, before", w->failed, w->ended);
    else
        complain("work",
                 "%" PRIu64 " of %" PRIu64 " lines failed, the first: line %" PRIu64
                 ", status %" PRIu32 ": %.60s",
                 w->failed, w->ended, w->first_failed, w->first_status, w->first_command);
}

static int exit_status(const struct work *w) {
    if (w->signal != 0)
        return STATUS_SIGNAL + w->signal;
    return w->status != 0             ? w->status
           : w->failed > FAILURES_MAX ? FAILURES_MAX + 1
                                      : (int)w->failed;
}

/* A name that was given is for going on: what has failed may be wanted again. */
static bool is_wanted(const struct work *w, bool whole) {
    bool named = w->wish->resume != NULL || w->wish->resume_failed != NULL;
    return whole ? named && w->failed > 0 : w->found || w->ended + w->open > 0;
}

static void end(struct work *w) {
    bool whole = w->status == 0 && w->signal == 0 && work_is_done(w);
    (void)showing_close(&w->showing);
    if (whole)
        (void)office_finish(&w->office);
    pilots_end(&w->pilots, whole);
    pilots_fini(&w->pilots);
    office_close(&w->office);
    contact_close(&w->contact);
    say_failures(w);
    if (!w->ours)
        return;
    if (!is_wanted(w, whole))
        files_remove(AT_FDCWD, w->folder);
    else if (!whole && w->ended + w->open > 0)
        say_how_to_go_on(w);
}

static int run(struct work *w) {
    struct session_config callbacks = {
        .patience_ns = PATIENCE_WAITING, .context = w, .news = on_news, .lost = on_lost};
    int r = open_log(w);
    if (r == 0 && w->wish->automatic)
        r = automatic_up(w->wish->cluster);
    if (r == 0)
        r = contact_find(&w->contact.cluster, w->wish->cluster);
    if (r != 0)
        return r;
    r = contact_begin(&w->contact, &callbacks);
    if (r == 0) {
        w->status = begin(w);
        if (w->status == 0)
            follow(w);
        end(w);
        r = exit_status(w);
    }
    cluster_free(&w->contact.cluster);
    return r;
}

static int dry_run(struct work *w) {
    char *command;
    int r = 0;
    while ((r = supply_next(&w->supply, &command)) >= 0) {
        if (r == 0 && supply_read(&w->supply) < 0)
            return STATUS_STORM;
        if (r == 0)
            continue;
        puts(command);
        free(command);
    }
    return r == -ENODATA ? STATUS_OK : STATUS_STORM;
}

static int judge(const struct work_wish *o) {
    const char *name = o->resume_failed != NULL ? o->resume_failed : o->resume;
    if (o->resume != NULL && o->resume_failed != NULL)
        return complain("work", "--resume or --resume-failed: leave one of both out");
    if (o->halt && o->keep_going)
        return complain("work", "--halt or --keep-going: leave one of both out");
    if (o->unordered && o->ordered)
        return complain("work", "--unordered or --keep-order: leave one of both out");
    if (name != NULL && !good_name(name))
        return complain(
            "work", "\"%s\" is no name to go on with; letters, digits and dashes will do", name);
    if (o->retries > UINT16_MAX)
        return complain("work", "--retries is at most %d", UINT16_MAX);
    return 0;
}

int work_main(int argc, char **argv) {
    static struct work w;
    struct work_wish o = {0};
    const struct option *table = options_of(&o);
    int count = options_parse_leading(table, argc, argv);
    if (count == OPTIONS_HELP)
        return help(table);
    int status = count == OPTIONS_WRONG ? STATUS_USAGE : judge(&o);
    if (status != 0)
        return status;
    w.wish = &o;
    w.next = 1;
    w.book.fd = -1;
    w.showing.json = o.json;
    argv[count + 1] = NULL;
    status = supply_open(&w.supply, "work", argv + 1, o.file, o.zero ? '\0' : '\n');
    if (status == 0)
        status = o.dry_run ? dry_run(&w) : run(&w);
    supply_fini(&w.supply);
    workbook_close(&w.book);
    free(w.again);
    free(w.pending);
    return status;
}
