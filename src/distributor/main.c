/* SPDX-License-Identifier: MIT */
/* storm-wodi: the server of a work distributor.
 *
 *     storm-wodi --folder DIR [--listen ADDRESS] [--sync data|none] [--steps N] [--bytes MB]
 *                [--masters N] [--workers N] [--journal KB] [--in-order] [--no-copies] [--no-ahead] [--leash FD]
 *                [--hire LEAST:MOST:PROCESSORS:EXPRESSION... -- WORKER [ARGUMENT...]]
 *
 * The folder keeps its journal, the histories of masters, its address and its token: started again with the same folder it
 * goes on where it was. Prints the line STORM_WODI=..., which masters and workers have in their environment.
 *
 * With --hire, once for each class, it asks its cluster for hosts and starts workers there itself (staff.h). With --leash it says its line on
 * that socket instead, and ends when whoever started it closes the other end; wodi_init() starts it so. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "distributor/server.h"
#include "distributor/staff.h"

enum { EXIT_USAGE = 2, EXIT_HOPELESS = 3, PATH_BYTES = 90, LINE_BYTES = 256 };

struct wishes {
    const char *folder, *listen;
    bool no_sync;
    uint64_t compact_bytes;
    int leash; /* -1: none */
    char **worker;
    struct desk_limits limits;
    struct staff staff;
};

/* A descriptor that says that it is time to end. */
struct signals {
    struct source source;
    struct server *server;
};

static int usage(void) {
    fputs(
        "usage: storm-wodi --folder DIR [--listen unix:PATH|tcp:IP:PORT] [--sync data|none]\n"
        "                  [--steps N] [--bytes MB] [--masters N] [--workers N] [--journal KB] [--in-order]\n"
        "                  [--no-copies] [--no-ahead] [--leash FD]\n"
        "                  [--hire LEAST:MOST:PROCESSORS:EXPRESSION... -- WORKER [ARGUMENT...]]\n",
        stderr);
    return EXIT_USAGE;
}

static bool number(const char *text, uint64_t most, uint64_t *ret) {
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return *text && !*end && errno == 0 && *ret > 0 && *ret <= most;
}

static bool take_option(struct wishes *w, int option, const char *value) {
    uint64_t n = 0;
    switch (option) {
    case 'f':
        w->folder = value;
        return true;
    case 'l':
        w->listen = value;
        return true;
    case 's':
        w->no_sync = strcmp(value, "none") == 0;
        return w->no_sync || strcmp(value, "data") == 0;
    case 'n':
        if (!number(value, 1000000, &n))
            return false;
        w->limits.steps = (uint32_t)n;
        return true;
    case 'b':
        if (!number(value, 16384, &n))
            return false;
        w->limits.bytes = n << 20;
        return n >= 4;
    case 'm':
        if (!number(value, DESK_MASTERS_MAX, &n))
            return false;
        w->limits.masters = (uint32_t)n;
        return true;
    case 'w':
        if (!number(value, 100000, &n))
            return false;
        w->limits.workers = (uint32_t)n;
        return true;
    case 'j':
        if (!number(value, 1 << 20, &n))
            return false;
        w->compact_bytes = n << 10;
        return true;
    case 'o':
        w->limits.in_order = true;
        return true;
    case 'c':
        w->limits.no_copies = true;
        return true;
    case 'a':
        w->limits.ahead_ns = 0;
        return true;
    case 'h':
        return staff_class_parse(&w->staff, value);
    case 'L':
        if (!number(value, INT_MAX, &n))
            return false;
        w->leash = (int)n;
        return true;
    default:
        return false;
    }
}

static bool parse(struct wishes *w, int argc, char **argv) {
    static const struct option options[] = {
        {"folder", required_argument, NULL, 'f'},  {"listen", required_argument, NULL, 'l'},
        {"sync", required_argument, NULL, 's'},    {"steps", required_argument, NULL, 'n'},
        {"bytes", required_argument, NULL, 'b'},   {"masters", required_argument, NULL, 'm'},
        {"workers", required_argument, NULL, 'w'}, {"in-order", no_argument, NULL, 'o'},
        {"journal", required_argument, NULL, 'j'}, {"no-copies", no_argument, NULL, 'c'},
        {"no-ahead", no_argument, NULL, 'a'},      {"hire", required_argument, NULL, 'h'},
        {"leash", required_argument, NULL, 'L'},   {NULL, 0, NULL, 0}};
    for (int o; (o = getopt_long(argc, argv, "+", options, NULL)) >= 0;)
        if (!take_option(w, o, optarg))
            return false;
    w->limits.links = w->limits.workers + w->limits.masters + 16;
    /* A socket in the folder has a name that must not be long. Numbers of steps have twenty bits, whatever the masters. */
    w->worker = argv + optind;
    return w->folder && (optind < argc) == (w->staff.class_count > 0) &&
           (w->listen || strlen(w->folder) < PATH_BYTES) &&
           (uint64_t)w->limits.masters * w->limits.steps < 1 << 20;
}

/* ---- what a server leaves for its next life: FOLDER/server, "ADDRESS#TOKEN" ---- */

static bool read_line(int folder, char line[LINE_BYTES]) {
    int fd = openat(folder, "server", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, line, LINE_BYTES - 1) : -1;
    if (fd >= 0)
        close(fd);
    line[n > 0 ? n : 0] = 0;
    line[strcspn(line, "\n")] = 0;
    const char *hash = strrchr(line, '#');
    return hash && strlen(hash) == 33;
}

static int write_line(int folder, const char *line) {
    int fd = openat(folder, "server.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t len = strlen(line);
    int status = fd >= 0 && write(fd, line, len) == (ssize_t)len ? 0 : -EIO;
    if (fd >= 0)
        close(fd);
    return status == 0 && renameat(folder, "server.new", folder, "server") != 0 ? -errno : status;
}

/* Address and token, as before if there was a before. */
static int settle_address(const struct wishes *w, int folder, struct address *listen,
                          uint64_t token[2]) {
    char line[LINE_BYTES], text[ADDRESS_TEXT_MAX];
    bool before = read_line(folder, line);
    if (getrandom(token, 16, 0) != 16)
        return -EIO;
    snprintf(text, sizeof text, "unix:%s/socket", w->folder);
    if (before) {
        char *hash = strrchr(line, '#');
        token[1] = strtoull(hash + 17, NULL, 16);
        hash[17] = 0;
        token[0] = strtoull(hash + 1, NULL, 16);
        *hash = 0;
        snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, line);
    }
    return address_parse(listen, w->listen && !before ? w->listen : text);
}

static void on_signal(struct source *source, uint32_t events) {
    (void)events;
    CONTAINER_OF(source, struct signals, source)->server->over = true;
}

/* One that is on a leash hears no signals: they are sent to all processes of a job, and its master decides what follows. */
static int await_end(struct server *s, struct signals *signals, int leash) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN); /* it writes what its workers write */
    if (leash < 0)
        leash = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return loop_adopt(&s->loop, &signals->source, leash, on_signal, EPOLLIN);
}

static void format_line(const struct address *a, const uint64_t token[2], char line[LINE_BYTES]) {
    char text[ADDRESS_TEXT_MAX];
    address_format(a, text, sizeof text);
    snprintf(line, LINE_BYTES, "%s#%016llx%016llx", text, (unsigned long long)token[0],
             (unsigned long long)token[1]);
}

/* Hosts may be other machines. */
static int hire(struct server *s, struct wishes *w) {
    char line[LINE_BYTES];
    struct address outer;
    if (w->staff.class_count == 0)
        return 0;
    staff_address(&outer);
    int status = server_listen_also(s, &outer);
    format_line(&outer, w->limits.token, line);
    return status < 0 ? status : staff_open(&w->staff, s, w->worker, line);
}

static int say_line(const struct wishes *w, const char *line) {
    char whole[LINE_BYTES + 16];
    int len = snprintf(whole, sizeof whole, "STORM_WODI=%s\n", line);
    if (w->leash >= 0)
        return send(w->leash, whole, (size_t)len, MSG_NOSIGNAL) == len ? 0 : -EPIPE;
    fputs(whole, stdout);
    fflush(stdout);
    return 0;
}

static int serve(struct server *s, struct wishes *w, int folder, const struct address *listen) {
    char line[LINE_BYTES];
    struct signals signals = {.source = {.fd = -1}, .server = s};
    format_line(listen, w->limits.token, line);
    int status = write_line(folder, line);
    if (status == 0)
        status = hire(s, w);
    if (status == 0)
        status = await_end(s, &signals, w->leash);
    if (status == 0)
        status = say_line(w, line);
    while (status == 0 && !s->over) {
        server_turn(s);
        staff_turn(&w->staff);
        status = s->status < 0 ? s->status : w->staff.status;
    }
    staff_close(&w->staff);
    loop_close(&s->loop, &signals.source);
    return status;
}

int main(int argc, char **argv) {
    static struct wishes w = {.compact_bytes = 32 << 20, .leash = -1};
    struct address listen;
    static struct server s;
    desk_usual(&w.limits);
    if (!parse(&w, argc, argv))
        return usage();
    if (!desk_fits(&w.limits)) {
        fprintf(stderr,
                "storm-wodi: --bytes %" PRIu64 " for each of --masters %" PRIu32
                " is more than can be kept: less of either\n",
                w.limits.bytes >> 20, w.limits.masters);
        return EXIT_USAGE;
    }
    char *whole = realpath(w.folder, NULL);
    if (!whole && mkdir(w.folder, 0700) == 0)
        whole = realpath(w.folder, NULL);
    int folder = whole ? open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int status = folder < 0 ? -errno : 0;
    w.folder = whole;
    if (status == 0)
        status = settle_address(&w, folder, &listen, w.limits.token);
    if (status == 0) {
        w.limits.folder = bytes_from_str(whole);
        status = server_start(&s, folder, &w.limits, !w.no_sync, w.compact_bytes, &listen);
    }
    if (status == 0) {
        status = serve(&s, &w, folder, &listen);
        server_stop(&s);
    }
    if (status < 0 && status != -ECHILD) /* that was told */
        fprintf(stderr, "storm-wodi: %s: %s\n", whole ? whole : "no such folder",
                status == -EUCLEAN ? "the journal is damaged"
                : status == -EBUSY ? "another server has it open"
                                   : strerror(-status));
    free(whole);
    return status == -ECHILD ? EXIT_HOPELESS : status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
