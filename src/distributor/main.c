/* SPDX-License-Identifier: MIT */
/* storm-wodi: the server of a work distributor.
 *
 *     storm-wodi --folder DIR [--listen ADDRESS] [--sync data|none] [--steps N] [--bytes MB]
 *                [--masters N] [--workers N] [--journal KB] [--in-order] [--no-copies] [--no-ahead]
 *
 * The folder keeps its journal, the histories of masters, its address and its token: started again with the same folder it
 * goes on where it was. Prints the line STORM_WODI=..., which masters and workers have in their environment. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "distributor/server.h"

enum { EXIT_USAGE = 2, PATH_BYTES = 90, LINE_BYTES = 256 };

struct wishes {
    const char *folder, *listen;
    bool no_sync;
    uint64_t compact_bytes;
    struct desk_limits limits;
};

struct signals {
    struct source source;
    struct server *server;
};

static int usage(void) {
    fputs(
        "usage: storm-wodi --folder DIR [--listen unix:PATH|tcp:IP:PORT] [--sync data|none]\n"
        "                  [--steps N] [--bytes MB] [--masters N] [--workers N] [--journal KB] [--in-order]\n"
        "                  [--no-copies] [--no-ahead]\n",
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
        {"no-ahead", no_argument, NULL, 'a'},      {NULL, 0, NULL, 0}};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) >= 0;)
        if (!take_option(w, o, optarg))
            return false;
    w->limits.links = w->limits.workers + w->limits.masters + 16;
    /* A socket in the folder has a name that must not be long. Numbers of steps have twenty bits, whatever the masters. */
    return w->folder && optind == argc && (w->listen || strlen(w->folder) < PATH_BYTES) &&
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

static int serve(struct server *s, int folder, const struct address *listen,
                 const uint64_t token[2]) {
    char line[LINE_BYTES], text[ADDRESS_TEXT_MAX];
    struct signals signals = {.server = s};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    address_format(listen, text, sizeof text);
    snprintf(line, sizeof line, "%s#%016llx%016llx\n", text, (unsigned long long)token[0],
             (unsigned long long)token[1]);
    int status = write_line(folder, line);
    if (status == 0)
        status = loop_adopt(&s->loop, &signals.source,
                            signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), on_signal, EPOLLIN);
    if (status < 0)
        return status;
    printf("STORM_WODI=%s", line);
    fflush(stdout);
    while (!s->over && s->status == 0)
        server_turn(s);
    loop_close(&s->loop, &signals.source);
    return s->status;
}

int main(int argc, char **argv) {
    struct wishes w = {.compact_bytes = 32 << 20};
    struct address listen;
    static struct server s;
    desk_usual(&w.limits);
    if (!parse(&w, argc, argv))
        return usage();
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
        status = serve(&s, folder, &listen, w.limits.token);
        server_stop(&s);
    }
    if (status < 0)
        fprintf(stderr, "storm-wodi: %s: %s\n", whole ? whole : "no such folder",
                status == -EUCLEAN ? "the journal is damaged" : strerror(-status));
    free(whole);
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
