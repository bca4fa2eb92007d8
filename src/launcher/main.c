/* SPDX-License-Identifier: MIT */
/* storm-pl: the program launcher of one node.
 *
 *     storm-pl --socket PATH --node N --key-fd FD [--cgroup DIR] [--confine HOW] [--each PROGRAM]
 *              [--rations DIR] [--system-cores N] [--home H] [--strobe PATH] [--first P] [--pes N]
 *
 * Started with its node and left alone: its manager comes to the socket, dies and comes again. It
 * is a small static program of its own because starting processes from a small one is cheap. SIGTERM
 * ends its processes, then itself. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/units.h"
#include "os/child.h"
#include "os/shift.h"
#include "os/spawn.h"

enum { EXIT_USAGE = 2 };

/* Only what is used takes memory. */
static const struct pl_config limits = {.groups = 256,
                                        .processes = 4096,
                                        .petitioners = 128,
                                        .setup_bytes = 8 * MIB,
                                        .resend_ns = NS_PER_S,
                                        .resend_max_ns = 10 * NS_PER_S,
                                        .lease_ns = 30 * NS_PER_S};

struct program {
    struct shift_config config;
    struct shift *shift;
    struct source signals;
    bool socket, node, key;
    char host[HOST_NAME_BYTES + 1];
};

static bool parse_number(const char *text, uint32_t *ret) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value >= UINT32_MAX)
        return false;
    *ret = (uint32_t)value;
    return true;
}

/* Secrets come by descriptor: arguments can be read by everybody. */
static bool read_key(const char *text, uint64_t ret[2]) {
    uint32_t fd;
    uint8_t bytes[16];
    if (!parse_number(text, &fd))
        return false;
    bool good = read((int)fd, bytes, sizeof bytes) == sizeof bytes;
    close((int)fd);
    ret[0] = load_le64(bytes);
    ret[1] = load_le64(bytes + 8);
    return good;
}

static bool parse_socket(const char *path, struct address *ret) {
    char text[ADDRESS_TEXT_MAX];
    int len = snprintf(text, sizeof text, "seqpacket:%s", path);
    return len > 0 && (size_t)len < sizeof text && address_parse(ret, text) == 0;
}

static bool parse(struct program *p, int argc, char **argv) {
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'},       {"node", required_argument, NULL, 'n'},
        {"key-fd", required_argument, NULL, 'k'},       {"cgroup", required_argument, NULL, 'c'},
        {"each", required_argument, NULL, 'e'},         {"at", required_argument, NULL, 'a'},
        {"confine", required_argument, NULL, 'f'},      {"rations", required_argument, NULL, 'm'},
        {"system-cores", required_argument, NULL, 'y'}, {"home", required_argument, NULL, 'h'},
        {"strobe", required_argument, NULL, 'r'},       {"first", required_argument, NULL, 'i'},
        {"pes", required_argument, NULL, 'p'},          {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        bool good = true;
        switch (option) {
        case 's':
            p->socket = good = parse_socket(optarg, &p->config.address);
            break;
        case 'n':
            p->node = good = parse_number(optarg, &p->config.node);
            break;
        case 'k':
            p->key = good = read_key(optarg, p->config.key);
            break;
        case 'c':
            p->config.cgroup = optarg;
            break;
        case 'y':
            good = parse_number(optarg, &p->config.system_cores);
            break;
        case 'm':
            p->config.rations = optarg;
            break;
        case 'i':
            good = parse_number(optarg, &p->config.first);
            break;
        case 'p':
            good = parse_number(optarg, &p->config.pes);
            break;
        case 'r':
            p->config.strobe = optarg;
            break;
        case 'e':
            p->config.each = optarg;
            break;
        case 'a':
            p->config.at = optarg;
            good = strlen(optarg) < INET6_ADDRSTRLEN;
            break;
        case 'f':
            good = confine_parse(optarg, &p->config.confine);
            break;
        case 'h':
            good = parse_number(optarg, &p->config.home);
            break;
        default:
            good = false;
        }
        if (!good)
            return false;
    }
    return optind == argc && p->socket && p->node && p->key;
}

static void on_signal(struct source *s, uint32_t events) {
    struct program *p = CONTAINER_OF(s, struct program, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(s->fd, &info, sizeof info) == sizeof info)
        shift_end(p->shift);
}

/* Whoever started us may go, and the terminal with it. */
static int prepare(struct program *p) {
    char name[16];
    snprintf(name, sizeof name, "storm-pl n%u", p->config.node);
    prctl(PR_SET_NAME, name);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    p->signals =
        (struct source){.ready = on_signal, .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    return p->signals.fd < 0 ? -errno : 0;
}

/* While low descriptors are taken, what we keep for long gets others (see spawn.h). Where there are few at
 * all, or not even the first three, they are left as they are. */
static bool take_low_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 4 * SPAWN_LOW_END)
        return false;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            return false;
    child_close_from(STDERR_FILENO + 1);
    for (int fd = STDERR_FILENO + 1; fd < SPAWN_LOW_END; fd++)
        dup2(STDIN_FILENO, fd);
    return true;
}

/* All but the last, which stays taken: that is where processes find their bell, far from what shells use. */
static void free_low_descriptors(void) {
    for (int fd = STDERR_FILENO + 1; fd < SPAWN_LOW_END - 1; fd++)
        close(fd);
}

static int place_for_bell(bool taken) {
    int fd = taken ? SPAWN_LOW_END - 1 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, SPAWN_LOW_END - 1);
    return fd < 0 ? 0 : fd;
}

int main(int argc, char **argv) {
    struct program p = {.config = {.pl = limits}};
    if (!parse(&p, argc, argv)) {
        fprintf(
            stderr,
            "usage: storm-pl --socket PATH --node N --key-fd FD [--cgroup DIR] [--confine HOW] "
            "[--rations DIR] [--system-cores N] [--each PROGRAM] [--at ADDRESS] [--home H] [--strobe PATH] [--first P] [--pes N]\n");
        return EXIT_USAGE;
    }
    bool taken = take_low_descriptors();
    p.config.bell = place_for_bell(taken);
    gethostname(p.host, sizeof p.host - 1);
    p.config.pl.host = bytes_from_str(p.host);
    int r = prepare(&p);
    if (r < 0)
        fprintf(stderr, "storm-pl: n%u: %s\n", p.config.node, strerror(-r));
    else
        p.shift = shift_new(&p.config, &r);
    if (taken)
        free_low_descriptors();
    if (p.shift == NULL)
        return EXIT_FAILURE;
    r = loop_add(shift_loop(p.shift), &p.signals, EPOLLIN);
    if (r == 0)
        shift_run(p.shift);
    shift_free(p.shift);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
