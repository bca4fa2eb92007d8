/* SPDX-License-Identifier: MIT */
/* storm bench: measures this installation, or simulated clusters of any size.
 *
 * Here is the command line; the measuring is in bench_real.c and bench_sim.c. */
#include "cli/bench.h"
#include "cli/gangwork.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "sim/network.h"

enum { LINKS_NODES_MAX = 65536, PRIMITIVES_NODES_MAX = 1000000, REAL_NODES_MAX = 4096 };
enum { RUNS_MAX = 10000, ARITY_MAX = 1024 };
#define SIZE_BYTES_MAX (64 * GIB)

static void print_help(const struct option *table) {
    puts(
        "usage: storm bench primitives [--sim] [OPTIONS]\n"
        "       storm bench idle [OPTIONS]\n"
        "       storm bench launch [OPTIONS]         how long `storm run` takes; see its --help\n"
        "       storm bench throughput [OPTIONS]     small jobs a second; see its --help\n"
        "       storm bench transfer [OPTIONS]       how long `storm cp` takes; see its --help\n"
        "       storm bench gang [OPTIONS]           what turns of jobs cost; see its --help\n"
        "       storm bench exec [OPTIONS]           how long `storm exec` takes; see its --help\n"
        "       storm bench wodi [OPTIONS]           master and workers; see its --help\n"
        "\n"
        "primitives: how long an operation on all nodes takes, from the machine manager's request\n"
        "until it knows that it is done everywhere, on clusters of real processes on this machine,\n"
        "beside a bare fan-out with acknowledgements and the simulator's prediction. With --sim on\n"
        "simulated clusters: times are virtual, the same options give the same numbers on any\n"
        "computer.\n"
        "idle: what a cluster of real processes costs that has nothing to do.\n"
        "\n"
        "cases:\n"
        "  xfer, xfer-4k    XFER-AND-SIGNAL of no bytes or 4 KiB, signalling a remote event\n"
        "  compare          COMPARE-AND-WRITE that writes nothing: one round instead of two\n"
        "  compare-write    COMPARE-AND-WRITE whose condition holds, with its write\n"
        "  test-event       TEST-EVENT, which is local: no messages at all\n"
        "  wave             a heartbeat, from the tick until all nodes are known to live\n"
        "  xfer-stream      XFER-AND-SIGNALs of 4 KiB, eight at once\n"
        "  bulk             XFER-AND-SIGNAL of 1 MiB, through slots (up to 256 nodes: memory)\n"
        "\n"
        "networks of simulated clusters (latency, bandwidth, processor time for a message):");
    const struct network *n;
    for (uint32_t i = 0; (n = network_at(i)) != NULL; i++) {
        char latency[UNITS_TEXT_MAX], cpu[UNITS_TEXT_MAX];
        units_format_duration(n->link.latency_ns, latency, sizeof latency);
        units_format_duration(n->link.cpu_receive_ns, cpu, sizeof cpu);
        printf("  %-12s %7s, %5" PRIu64 " MB/s, %6s   %s\n", n->name, latency,
               n->link.bytes_per_s / 1000000, cpu, n->words);
    }
    options_print(table, stdout);
}

static int find_network(struct bench_settings *s) {
    const struct network *n = network_find(s->network_text);
    if (n == NULL)
        return complain("bench", "there is no network \"%s\"; see: storm help bench",
                        s->network_text);
    s->common.network = n->name;
    s->common.link = n->link;
    struct link_model *l = &s->common.link;
    if (s->latency_ns != UINT64_MAX) {
        l->latency_ns = s->latency_ns;
        l->connect_ns = network_connect_ns(s->latency_ns);
    }
    if (s->jitter_ns != UINT64_MAX)
        l->jitter_ns = s->jitter_ns;
    if (s->bytes_per_s != UINT64_MAX)
        l->bytes_per_s = s->bytes_per_s;
    if (s->cpu_ns != UINT64_MAX)
        l->cpu_receive_ns = l->cpu_send_ns = s->cpu_ns;
    if (memcmp(l, &n->link, sizeof *l) != 0)
        s->common.network = "custom";
    return STATUS_OK;
}

static int find_shapes(struct bench_settings *s) {
    enum shape shape;
    if (strcmp(s->shape_text, "all") == 0) {
        for (int i = 0; i < SHAPES; i++)
            s->shapes[i] = true;
    } else if (shape_parse(s->shape_text, &shape)) {
        s->shapes[shape] = true;
    } else {
        return complain("bench",
                        "there is no shape \"%s\"; give k-ary, binomial, chain, flat or all",
                        s->shape_text);
    }
    return STATUS_OK;
}

static int find_cases(struct bench_settings *s) {
    char name[32];
    const char *at = s->cases_text;
    for (int i = 0; at == NULL && i < BENCH_CASES; i++)
        s->cases[i] = true;
    while (at != NULL && *at != '\0') {
        size_t len = strcspn(at, ",");
        enum bench_case which;
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        if (!case_find(name, &which))
            return complain("bench", "there is no case \"%s\"; see: storm help bench", name);
        s->cases[which] = true;
        at += len + (at[len] == ',');
    }
    return STATUS_OK;
}

static int check_sizes(const struct bench_settings *s) {
    uint64_t most = !s->sim                          ? REAL_NODES_MAX
                    : s->common.depth == DEPTH_LINKS ? LINKS_NODES_MAX
                                                     : (uint64_t)PRIMITIVES_NODES_MAX;
    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (s->nodes.at[i] < 1 || s->nodes.at[i] > most)
            return complain("bench",
                            "--nodes %" PRIu64 ": 1 to %" PRIu64
                            " nodes can be %s; give another number",
                            s->nodes.at[i], most,
                            !s->sim                          ? "processes of one machine"
                            : s->common.depth == DEPTH_LINKS ? "simulated under the links"
                                                             : "simulated under the primitives");
    if (s->runs < 1 || s->runs > RUNS_MAX)
        return complain("bench", "--runs %" PRIu64 ": give 1 to %d", s->runs, RUNS_MAX);
    if (s->arity < 1 || s->arity > ARITY_MAX)
        return complain("bench", "--arity %" PRIu64 ": give 1 to %d", s->arity, ARITY_MAX);
    if (s->period_ns < 10 * NS_PER_MS)
        return complain("bench", "--period: a heartbeat takes some time; give 10ms or more");
    return STATUS_OK;
}

static int find_links(struct bench_settings *s) {
    if (!transport_parse(s->links_text, &s->links))
        return complain("bench", "there are no links of kind \"%s\"; give tcp or unix",
                        s->links_text);
    return STATUS_OK;
}

static int find_depth(struct bench_settings *s) {
    for (int d = 0; d < DEPTHS; d++)
        if (strcmp(s->depth_text, depth_name(d)) == 0) {
            s->common.depth = (enum depth)d;
            return STATUS_OK;
        }
    return complain("bench", "there is no depth \"%s\"; give links or primitives", s->depth_text);
}

/* The benches that have a command line of their own. */
static int (*find_own(const char *name))(int argc, char **argv) {
    return strcmp(name, "launch") == 0       ? bench_launch
           : strcmp(name, "throughput") == 0 ? bench_throughput
           : strcmp(name, "transfer") == 0   ? bench_transfer
           : strcmp(name, "load") == 0       ? bench_load
           : strcmp(name, "exec") == 0       ? bench_exec
           : strcmp(name, "exec-link") == 0  ? bench_exec_link
           : strcmp(name, "gang") == 0       ? bench_gang
           : strcmp(name, "gang-node") == 0  ? bench_gang_node
           : strcmp(name, "gang-work") == 0  ? bench_gang_work
           : strcmp(name, "wodi") == 0       ? bench_wodi
                                             : NULL;
}

bool bench_sizes(const char *text, struct number_list *ret) {
    struct number_list list = {0};
    do {
        char one[32];
        size_t len = strcspn(text, ",");
        snprintf(one, sizeof one, "%.*s", (int)len, text);
        if (len >= sizeof one || list.count == NUMBERS_MAX ||
            units_parse_size(one, &list.at[list.count]) < 0 || list.at[list.count] == 0 ||
            list.at[list.count] > SIZE_BYTES_MAX)
            return false;
        list.count++;
        text += len + (text[len] == ',');
    } while (*text != '\0');
    *ret = list;
    return true;
}

static int check_arguments(int count, char **argv, const struct bench_settings *s) {
    if (count == 0)
        return complain("bench", "what is to be measured? try: storm bench primitives");
    bool idle = strcmp(argv[1], "idle") == 0;
    if (find_own(argv[1]) != NULL)
        return complain("bench", "options follow the name: storm bench %s [OPTIONS]", argv[1]);
    if (!idle && strcmp(argv[1], "primitives") != 0)
        return complain(
            "bench",
            "there is no bench \"%s\"; there are: primitives, idle, launch, throughput, "
            "transfer, gang, exec, wodi",
            argv[1]);
    if (count > 1)
        return complain("bench", "what is \"%s\" for? see: storm help bench", argv[2]);
    if (idle && s->sim)
        return complain("bench", "only real processes can be idle; leave out --sim");
    return STATUS_OK;
}

/* What was not said: small clusters that are real, large ones that are not. */
static void fill_in(struct bench_settings *s, bool idle) {
    if (s->nodes.count == 0)
        options_list(s->sim ? "4..1024" : idle ? "64" : "4,16,64", &s->nodes);
    if (s->runs == 0)
        s->runs = s->sim ? 5 : 200;
}

static int find_all(struct bench_settings *s) {
    int (*const steps[])(struct bench_settings *) = {find_depth, find_network, find_shapes,
                                                     find_cases, find_links};
    int status = STATUS_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++)
        status = steps[i](s);
    s->common.seed = s->seed;
    return status == STATUS_OK ? check_sizes(s) : status;
}

int bench_main(int argc, char **argv) {
    int (*own)(int, char **) = argc > 1 ? find_own(argv[1]) : NULL;
    if (own != NULL) {
        argv[1] = argv[0]; /* complaints name the command that `storm help` knows */
        return own(argc - 1, argv + 1);
    }
    struct bench_settings s = {.shape_text = "k-ary",
                               .depth_text = "links",
                               .network_text = network_at(0)->name,
                               .links_text = "tcp",
                               .arity = 8,
                               .seed = 1,
                               .period_ns = NS_PER_S,
                               .latency_ns = UINT64_MAX,
                               .jitter_ns = UINT64_MAX,
                               .bytes_per_s = UINT64_MAX,
                               .cpu_ns = UINT64_MAX};
    const struct option table[] = {
        {"nodes", OPTION_LIST, &s.nodes, "LIST", "4,16 or doubling 4..64 (default 4,16,64)"},
        {"shape", OPTION_TEXT, &s.shape_text, "SHAPE",
         "k-ary (default), binomial, chain, flat, all"},
        {"arity", OPTION_NUMBER, &s.arity, "K", "of the k-ary tree (default 8)"},
        {"links", OPTION_TEXT, &s.links_text, "KIND", "tcp (default) or unix"},
        {"period", OPTION_DURATION, &s.period_ns, "TIME", "of the heartbeat (default 1s)"},
        {"cases", OPTION_TEXT, &s.cases_text, "LIST", "only these (default: all)"},
        {"runs", OPTION_NUMBER, &s.runs, "R", "operations of each case (default 200; --sim: 5)"},
        {"json", OPTION_FLAG, &s.json, NULL, "one JSON object a line"},
        {"sim", OPTION_FLAG, &s.sim, NULL, "on simulated clusters (default sizes 4..1024)"},
        {"depth", OPTION_TEXT, &s.depth_text, "DEPTH", "--sim: under the links or the primitives"},
        {"net", OPTION_TEXT, &s.network_text, "NAME", "--sim: network (default ten-gigabit)"},
        {"latency", OPTION_DURATION, &s.latency_ns, "TIME",
         "--sim: of a link, in place of the network's"},
        {"jitter", OPTION_DURATION, &s.jitter_ns, "TIME",
         "--sim: most that is added to it at random"},
        {"bandwidth", OPTION_RATE, &s.bytes_per_s, "RATE", "--sim: of a node, such as 1.25GB"},
        {"cpu", OPTION_DURATION, &s.cpu_ns, "TIME",
         "--sim: of a processor to receive or send a message"},
        {"seed", OPTION_NUMBER, &s.seed, "S", "--sim: of all randomness (default 1)"},
        {"svg", OPTION_TEXT, &s.svg, "FILE", "--sim: write a plot of the latencies"},
        {"svg-bandwidth", OPTION_TEXT, &s.svg_bandwidth, "FILE",
         "--sim: write a plot of the bandwidths"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    int status = check_arguments(count, argv, &s);
    if (status != STATUS_OK)
        return status;
    bool idle = strcmp(argv[1], "idle") == 0;
    fill_in(&s, idle);
    status = find_all(&s);
    if (status != STATUS_OK)
        return status;
    return idle ? bench_idle(&s) : s.sim ? bench_sim(&s) : bench_real(&s);
}
