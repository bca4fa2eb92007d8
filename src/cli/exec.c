/* SPDX-License-Identifier: MIT */
/* storm exec: a command on hosts that run nothing but a remote shell, through a tree of such shells. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/harvest.h"
#include "cli/openfiles.h"
#include "cli/options.h"
#include "cli/reach.h"
#include "cli/terminal.h"
#include "cli/voices.h"

#define AGAIN_NS     (2 * NS_PER_S) /* for the second Ctrl-C */
#define GRACE_NS     (3 * NS_PER_S) /* for commands that were asked to end */
#define INPUT_WINDOW (256 * 1024)

enum { INPUT_PIECE = 32 * 1024, COMMAND_MAX = 48 * 1024 };

struct order {
    const char *hosts, *except, *connector, *user, *shape, *input;
    struct text_list put, get;
    uint64_t fanout, at_once, connect_ns, command_ns;
    bool gather, plain, json, quiet, highest;
};

struct exec {
    struct order order;
    struct roll roll;
    struct loop loop;
    struct source signals, input;
    struct voices voices;
    struct reach reach;
    struct task task;
    struct parcels parcels;
    struct harvest harvest;
    char *places[TASK_FILES_MAX]; /* of files, there */
    char *command;
    struct limb *limb;
    uint32_t input_host; /* FRAME_ALL, or one */
    uint64_t typed;      /* bytes of input that were sent */
    bool input_open, input_watched;
    uint64_t interrupted_at, stop_at;
    int ended_by; /* a signal; 0: by nobody */
    uint32_t signalled;
    uint64_t files; /* that we might have open, at first */
};

/* ---- What the user wants ----------------------------------------------------------------------- */

static const struct option *options_of(struct order *o) {
    static struct option table[24];
    const struct option all[] = {
        {"on,w", OPTION_TEXT, &o->hosts, "HOSTS", "where: h[0-31],gate,@FILE"},
        {"exclude,x", OPTION_TEXT, &o->except, "HOSTS", "and where not"},
        {"user,l", OPTION_TEXT, &o->user, "NAME", "to log in as, with ssh"},
        {"gather,b", OPTION_FLAG, &o->gather, NULL,
         "show what is the same once, with the hosts that say it"},
        {"no-label,N", OPTION_FLAG, &o->plain, NULL, "do not put the host before each line"},
        {"json", OPTION_FLAG, &o->json, NULL,
         "one document at the end: state, status and output of each host"},
        {"quiet,q", OPTION_FLAG, &o->quiet, NULL, "say nothing of failures but by the status"},
        {"status,S", OPTION_FLAG, &o->highest, NULL,
         "end with the highest status of all: so it always is"},
        {"stdin", OPTION_TEXT, &o->input, "all|none|HOST",
         "who reads what we read; none if not given"},
        {"put", OPTION_TEXTS, &o->put, "FILE:PATH",
         "send a file before the command; more than once"},
        {"get", OPTION_TEXTS, &o->get, "PATH:DIR",
         "fetch files after it, into DIR/HOST; more than once"},
        {"timeout,u", OPTION_DURATION, &o->command_ns, "TIME", "end a command that takes longer"},
        {"connect-timeout,t", OPTION_DURATION, &o->connect_ns, "TIME",
         "give a host up; 10s if not given"},
        {"shape", OPTION_TEXT, &o->shape, "SHAPE", "adaptive, binomial, k-ary, chain or flat"},
        {"fanout,f", OPTION_NUMBER, &o->fanout, "N",
         "children of each host: k-ary, 2 if not given; adaptive"},
        {"at-once", OPTION_NUMBER, &o->at_once, "N",
         "connections that each makes at a time; 32 if not given"},
        {"connector", OPTION_TEXT, &o->connector, "WORDS",
         "instead of ssh: %h is the host, %c a line for a shell there"},
        {0}};
    _Static_assert(sizeof all <= sizeof table, "room for all");
    memcpy(table, all, sizeof all);
    return table;
}

static void help(const struct option *table) {
    puts(
        "usage: storm exec -w HOSTS [OPTIONS] [--] COMMAND\n\n"
        "Runs a command on hosts where there is nothing but a remote shell, through a tree of such\n"
        "shells, and shows what it prints, line by line behind the host's name.\n");
    options_print(table, stdout);
    puts(
        "\nThe exit status is the highest of all hosts; 124 if a command took too long, 125 if a host was not\n"
        "reached or was lost, which is told with its reason.");
}

static int read_shape(struct exec *e) {
    static const char *const names[] = {"adaptive", "binomial", "k-ary", "kary", "chain", "flat"};
    static const enum hop_shape shapes[] = {HOP_ADAPTIVE, HOP_BINOMIAL, HOP_KARY,
                                            HOP_KARY,     HOP_CHAIN,    HOP_FLAT};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(e->order.shape, names[i]) == 0) {
            e->task.hop.shape = shapes[i];
            return 0;
        }
    }
    return complain("exec",
                    "there is no shape \"%s\"; there are: adaptive, binomial, k-ary, chain, flat",
                    e->order.shape);
}

static int read_input(struct exec *e) {
    const char *who = e->order.input;
    e->input_host = FRAME_ALL;
    e->task.input = strcmp(who, "none") != 0;
    if (!e->task.input || strcmp(who, "all") == 0)
        return 0;
    for (uint32_t i = 0; i < e->roll.count; i++) {
        if (strcmp(e->roll.names[i], who) == 0) {
            e->input_host = i;
            return 0;
        }
    }
    return complain("exec", "--stdin %s: that is none of the hosts; all, none, or one of them",
                    who);
}

/* The words as one line, as remote shells have it. */
static int read_command(struct exec *e, char **words) {
    size_t len = 0;
    FILE *f = open_memstream(&e->command, &len);
    if (f == NULL)
        return STATUS_STORM;
    for (int i = 0; words[i] != NULL; i++)
        fprintf(f, "%s%s", i > 0 ? " " : "", words[i]);
    fclose(f);
    if (len > COMMAND_MAX)
        return complain("exec", "the command is longer than %d bytes; put it into a file",
                        COMMAND_MAX);
    e->task.command = bytes_of(e->command, len);
    return 0;
}

/* "FILE:PATH"; a path that ends in a slash is a folder. */
static int read_put(struct exec *e, const char *words) {
    const char *colon = strrchr(words, ':');
    if (colon == NULL || colon == words || colon[1] == '\0')
        return complain("exec", "--put %s: it is FILE:PATH", words);
    if (e->task.put_count == TASK_FILES_MAX)
        return complain("exec", "--put can be given %d times", TASK_FILES_MAX);
    char *file = strndup(words, (size_t)(colon - words)), *place = NULL;
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    bool folder = words[strlen(words) - 1] == '/';
    if (file == NULL || asprintf(&place, "%s%s", colon + 1,
                                 !folder         ? ""
                                 : slash != NULL ? slash + 1
                                                 : file) < 0)
        return STATUS_STORM;
    struct task_file *t = &e->task.put[e->task.put_count];
    int r = parcels_add(&e->parcels, file, t);
    if (r < 0)
        complain("exec", "%s cannot be sent: %s", file, strerror(-r));
    t->path = bytes_from_str(place);
    e->places[e->task.put_count++] = place;
    free(file);
    return r < 0 ? STATUS_STORM : 0;
}

static int read_files(struct exec *e) {
    int r = 0;
    for (uint32_t i = 0; i < e->order.put.count && r == 0; i++)
        r = read_put(e, e->order.put.at[i]);
    for (uint32_t i = 0; i < e->order.get.count && r == 0; i++)
        r = harvest_want(&e->harvest, e->order.get.at[i], &e->task.get[e->task.get_count++]);
    return r;
}

static void plan(struct exec *e) {
    const struct order *o = &e->order;
    e->task.input_host = e->input_host;
    e->task.command_ns = o->command_ns;
    reach_plan(&e->task, &(struct reach_wish){.hosts = e->roll.count,
                                              .shape = e->task.hop.shape,
                                              .fanout = (uint32_t)o->fanout,
                                              .at_once = (uint32_t)o->at_once,
                                              .connect_ns = o->connect_ns});
}

/* ---- Input ------------------------------------------------------------------------------------- */

static void end_input(struct exec *e) {
    limb_told(e->limb, &(struct frame){.kind = FRAME_INPUT, .host = e->input_host});
    if (e->input_watched)
        loop_remove(&e->loop, &e->input);
    e->input_watched = e->input_open = false;
}

static void input_ready(struct source *s, uint32_t events) {
    struct exec *e = CONTAINER_OF(s, struct exec, input);
    uint8_t piece[INPUT_PIECE];
    (void)events;
    ssize_t n = read(STDIN_FILENO, piece, sizeof piece);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        end_input(e);
        return;
    }
    e->typed += (uint64_t)n;
    limb_told(e->limb, &(struct frame){.kind = FRAME_INPUT,
                                       .host = e->input_host,
                                       .body = bytes_of(piece, (size_t)n)});
}

/* It is read when everybody is there, and as fast as the slowest of them reads. */
static void settle_input(struct exec *e) {
    if (!e->input_open)
        return;
    uint64_t taken = limb_taken(e->limb);
    bool want = limb_complete(e->limb) && (taken >= e->typed || e->typed - taken < INPUT_WINDOW);
    if (want == e->input_watched)
        return;
    if (!want) {
        loop_remove(&e->loop, &e->input);
        e->input.fd = STDIN_FILENO;
    } else if (loop_add(&e->loop, &e->input, EPOLLIN) == -EPERM) {
        input_ready(&e->input, 0); /* a file is always ready, and cannot be waited for */
        loop_wake_at(&e->loop, e->loop.now + 1);
        return;
    }
    e->input_watched = want;
}

/* ---- Signals ----------------------------------------------------------------------------------- */

static void end_all(struct exec *e, int signal) {
    if (e->ended_by != 0) {
        limb_stop(e->limb);
        return;
    }
    e->ended_by = signal;
    e->stop_at = e->loop.now + GRACE_NS;
    limb_told(e->limb, &(struct frame){.kind = FRAME_SIGNAL, .number = (uint32_t)signal});
}

/* The first Ctrl-C at a terminal asks how it stands. */
static void interrupt(struct exec *e) {
    uint32_t count;
    bool again = e->interrupted_at != 0 && e->loop.now - e->interrupted_at < AGAIN_NS;
    e->interrupted_at = e->loop.now;
    if (again || e->ended_by != 0 || isatty(STDIN_FILENO) != 1) {
        end_all(e, SIGINT);
        return;
    }
    char *hosts = voices_at_work(&e->voices, &count);
    complain("exec",
             "%" PRIu32 " of %" PRIu32 " over, %" PRIu32 " at work%s%s; Ctrl-C again ends them",
             e->voices.over, e->roll.count, count, count > 0 ? ": " : "",
             count > 0 && hosts != NULL ? hosts : "");
    free(hosts);
}

static void signals_ready(struct source *s, uint32_t events) {
    struct exec *e = CONTAINER_OF(s, struct exec, signals);
    struct signalfd_siginfo info;
    int status;
    (void)events;
    while (read(s->fd, &info, sizeof info) == sizeof info) {
        e->signalled += info.ssi_signo != SIGCHLD;
        if (info.ssi_signo == SIGINT)
            interrupt(e);
        else if (info.ssi_signo != SIGCHLD)
            end_all(e, (int)info.ssi_signo);
    }
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        limb_reaped(e->limb, pid, status);
}

static int watch_signals(struct exec *e) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    e->signals = (struct source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                                 .ready = signals_ready};
    return e->signals.fd < 0 ? -errno : loop_add(&e->loop, &e->signals, EPOLLIN);
}

/* ---- The course of it -------------------------------------------------------------------------- */

static void on_up(void *context, const struct frame *f) {
    struct exec *e = context;
    if (f->kind == FRAME_FETCHED)
        harvest_take(&e->harvest, f);
    else
        voices_take(&e->voices, f);
}

static bool is_full(void *context) {
    struct exec *e = context;
    return voices_full(&e->voices);
}

/* Only where nothing else is written to the same screen. */
static void show_progress(struct exec *e) {
    const struct voices *v = &e->voices;
    char words[128];
    bool free_screen = e->order.gather || e->order.json || !terminal_is(stdout);
    if (!terminal_is(stderr) || !free_screen)
        return;
    snprintf(words, sizeof words, "%" PRIu32 " hosts: %" PRIu32 " at work, %" PRIu32 " over%s",
             e->roll.count, v->reached, v->over, v->failed > 0 ? ", some failed" : "");
    terminal_progress(words);
}

static void watch_stop(struct exec *e) {
    if (e->stop_at == 0)
        return;
    if (e->loop.now >= e->stop_at) {
        e->stop_at = 0;
        limb_stop(e->limb);
    } else {
        loop_wake_at(&e->loop, e->stop_at);
    }
}

static void follow(struct exec *e) {
    for (;;) {
        watch_stop(e);
        limb_settle(e->limb);
        settle_input(e);
        bool full = voices_full(&e->voices);
        voices_settle(&e->voices);
        if (full && !voices_full(&e->voices)) /* there is room again, and nothing else may tell */
            loop_wake_at(&e->loop, e->loop.now);
        if (e->voices.out.error == -EPIPE && e->ended_by == 0) { /* nobody reads us any more */
            e->voices.quiet = true;
            end_all(e, SIGPIPE);
        }
        show_progress(e);
        if (limb_over(e->limb))
            break;
        loop_turn(&e->loop, -1);
    }
    terminal_progress(NULL);
    voices_finish(&e->voices);
    for (uint32_t before = e->signalled; voices_waiting(&e->voices) && e->signalled == before;) {
        loop_turn(&e->loop, -1);
        voices_settle(&e->voices);
    }
    if (e->parcels.trouble[0] != '\0')
        complain("exec", "%s", e->parcels.trouble);
}

static int begin(struct exec *e) {
    enum voices_manner manner = e->order.json     ? VOICES_JSON
                                : e->order.gather ? VOICES_GATHER
                                : e->order.plain  ? VOICES_PLAIN
                                                  : VOICES_LINES;
    int r = loop_init(&e->loop);
    r = r < 0 ? r : watch_signals(e);
    r = r < 0 ? r : voices_init(&e->voices, &e->roll, &e->loop, manner);
    r = r < 0 ? r : harvest_begin(&e->harvest, &e->roll);
    if (r < 0)
        return r;
    e->voices.quiet = e->harvest.quiet = e->order.quiet;
    e->input = (struct source){.fd = STDIN_FILENO, .ready = input_ready};
    e->input_open = e->task.input;
    e->limb = limb_new(&(struct limb_config){.loop = &e->loop,
                                             .task = &e->task,
                                             .helper = &e->reach.helper,
                                             .parcels = &e->parcels,
                                             .root = true,
                                             .files = e->files,
                                             .context = e,
                                             .up = on_up,
                                             .full = is_full});
    return e->limb == NULL ? -ENOMEM : reach_begin(e->limb, &e->roll);
}

/* Everybody gets the task in one frame, with his name. */
static int look_at_length(struct exec *e) {
    char name[HOSTLIST_NAME_MAX];
    struct task t = e->task;
    uint8_t *frame = malloc(FRAME_BODY_MAX);
    memset(name, 'x', sizeof name);
    t.name = bytes_of(name, sizeof name);
    bool fits = frame != NULL && task_write(&t, room_of(frame, FRAME_BODY_MAX)) > 0;
    free(frame);
    return fits ? 0 : complain("exec", "the command and the names of files are too long together");
}

static int prepare(struct exec *e, int count, char **argv) {
    struct order *o = &e->order;
    if (o->hosts == NULL)
        return complain("exec", "on which hosts? say -w HOSTS");
    if (count == 0 && o->put.count == 0 && o->get.count == 0)
        return complain("exec", "which command?");
    if (o->fanout > REACH_CHILDREN_MAX || o->at_once > REACH_CHILDREN_MAX)
        return complain("exec", "--fanout and --at-once are at most %d", REACH_CHILDREN_MAX);
    int r = roll_read(&e->roll, "exec", o->hosts, o->except);
    if (r == 0 && e->roll.count > TASK_HOSTS_MAX)
        r = complain("exec", "those are more than %d hosts", TASK_HOSTS_MAX);
    r = r != 0 ? r : read_shape(e);
    r = r != 0 ? r : read_input(e);
    r = r != 0 ? r : reach_connector(&e->reach, "exec", o->connector, o->user);
    r = r != 0 ? r : read_command(e, argv + 1);
    r = r != 0 ? r : read_files(e);
    r = r != 0 ? r : reach_helper(&e->reach, "exec");
    e->task.connector = e->reach.connector;
    if (r == 0)
        plan(e);
    r = r != 0 ? r : openfiles_raise("exec", &e->task.hop, &e->files);
    return r != 0 ? r : look_at_length(e);
}

static int status_of(const struct exec *e) {
    int status = voices_status(&e->voices), error = voices_error(&e->voices);
    if (error != 0)
        complain("exec", "some of the output could not be written: %s", strerror(-error));
    return error != 0 || (status == 0 && e->harvest.failures > 0) ? STATUS_STORM : status;
}

int exec_main(int argc, char **argv) {
    static struct exec e;
    e.order = (struct order){.shape = "adaptive", .input = "none"};
    const struct option *table = options_of(&e.order);
    int count = options_parse_leading(table, argc, argv);
    if (count == OPTIONS_HELP) {
        help(table);
        return STATUS_OK;
    }
    int status = count == OPTIONS_WRONG ? STATUS_USAGE : prepare(&e, count, argv);
    if (status == 0) {
        int r = begin(&e);
        if (r < 0) {
            complain("exec", "cannot begin: %s", strerror(-r));
            status = STATUS_STORM;
        } else {
            follow(&e);
            status = e.ended_by != 0 ? STATUS_SIGNAL + e.ended_by : status_of(&e);
        }
        limb_free(e.limb);
        voices_fini(&e.voices);
    }
    harvest_fini(&e.harvest);
    parcels_fini(&e.parcels);
    for (uint32_t i = 0; i < e.task.put_count; i++)
        free(e.places[i]);
    roll_free(&e.roll);
    free(e.command);
    return status;
}
