/* SPDX-License-Identifier: MIT */
/* Launches, one after the other, and in each somebody is killed at some moment: the command, a node's
 * manager, a launcher, a process of the job, the machine manager, or nobody.
 *
 * No command hangs, every exit status is what it has to be, output is complete and exact, nothing is left
 * of any job when its command has returned, and in the end the log has every job once, with one end.
 *
 * Jobs run this same program. Each process leaves marks in a file of its round: that it has begun (with
 * its pid and node), what it has forked, that it is done and has only to exit. By the marks the test knows
 * whom to kill and what became of it. A process with no mark of being done was killed before; of one with
 * the mark we cannot know whether the kill came before its exit, so both are right.
 *
 * The daemon that was killed is started again by the watcher, and the next round may begin while it is
 * not there yet. A job whose command was killed goes on for a while beside the next ones.
 *
 * STORM_HAVOC: launches (60). STORM_SEED: to draw the same again. STORM_HAVOC_VICTIM: only these. */
#include <sqlite3.h>
#include <time.h>

#include "base/assert.h"
#include "base/random.h"
#include "stage.h"
#include "wire/message.h"

enum { NODES = 8, PES = 2, PROCS_MAX = NODES * PES, LAUNCHES = 60, CALM_EVERY = 20 };
enum { OUTPUT_MAX = 1 << 20, INPUT_MAX = 1 << 20, MARKS_MAX = 256 };
enum { SAID_BYTES = 4096, FAULTS_MAX = 5 };

#define HANG_NS   (30 * NS_PER_S)
#define SETTLE_NS (40 * NS_PER_S)
#define ORPHAN    "2s"

enum victim {
    VICTIM_NONE,
    VICTIM_CLIENT,
    VICTIM_PROCESS,
    VICTIM_LAUNCHER,
    VICTIM_NODE,
    VICTIM_MANAGER,
    VICTIMS
};

static const char *const victim_names[VICTIMS] = {"nobody",   "client", "process",
                                                  "launcher", "node",   "manager"};

/* How every process of a job behaves. */
struct play {
    uint32_t sleep_ms;
    uint32_t lines;  /* that each process writes */
    uint32_t code;   /* that one process exits with */
    uint32_t who;    /* it */
    bool reads;      /* rank 0 writes what it reads, before its lines */
    bool background; /* each process leaves a child behind */
};

struct mark {
    char kind; /* S: begun, C: child, D: done */
    uint32_t rank;
    pid_t pid;
    uint32_t node;
};

struct round {
    uint32_t number;
    uint32_t procs;
    struct play play;
    uint32_t input; /* bytes */
    bool label;     /* output comes in labelled lines, else in a file for each rank */
    enum victim victim;
    uint64_t delay_ns;
    uint32_t node;    /* whose daemon was killed; the victim's */
    uint32_t rank;    /* of the victim */
    bool struck;      /* somebody was killed */
    int status;       /* of the command */
    uint64_t took_ns; /* the command */
    struct mark marks[MARKS_MAX];
    uint32_t mark_count;
    char said[SAID_BYTES]; /* by the command */
};

struct havoc {
    struct stage stage;
    struct random random;
    uint32_t launches;
    uint32_t only; /* victims, a bit each */
    uint32_t faults;
    struct round round;
    uint32_t struck[VICTIMS], by_status[256];
    uint64_t longest_ns;
    uint32_t descriptors[STAGE_DAEMONS_MAX];
    /* What each launch came to, for the log: */
    int *expected;   /* status; -1: killed with its command, whatever it was */
    uint32_t *found; /* in the log */
    uint32_t jobs;   /* in the log */
};

/* ---- in the job: this program plays ---- */

/* Our number as everybody else has it: a job may be in a pid namespace. */
static int own_number(void) {
    char number[16] = "";
    return readlink("/proc/self", number, sizeof number - 1) > 0 ? atoi(number) : 0;
}

static void leave_mark(const char *path, char kind) {
    char line[128];
    const char *rank = getenv("STORM_RANK"), *node = getenv("STORM_NODE");
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int len = snprintf(line, sizeof line, "%c %s %d %s\n", kind, rank, own_number(), node + 1);
    if (fd < 0 || write(fd, line, (size_t)len) != len)
        _exit(98);
    close(fd);
}

static void nap(uint32_t ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* havoc_test --play MARKS SLEEP LINES CODE WHO READS BACKGROUND */
static int play(char **argv) {
    struct play p = {.sleep_ms = (uint32_t)atoi(argv[3]),
                     .lines = (uint32_t)atoi(argv[4]),
                     .code = (uint32_t)atoi(argv[5]),
                     .who = (uint32_t)atoi(argv[6]),
                     .reads = atoi(argv[7]) != 0,
                     .background = atoi(argv[8]) != 0};
    uint32_t rank = (uint32_t)atoi(getenv("STORM_RANK"));
    static char text[64 * 1024];
    leave_mark(argv[2], 'S');
    if (p.background && fork() == 0) {
        leave_mark(argv[2], 'C');
        nap(600 * 1000);
        _exit(0);
    }
    for (ssize_t got; p.reads && rank == 0 && (got = read(0, text, sizeof text)) > 0;)
        stage_put(text, (size_t)got);
    stage_put_lines(rank, p.lines);
    nap(p.sleep_ms);
    leave_mark(argv[2], 'D');
    _exit(rank == p.who ? (int)p.code : 0);
}

/* ---- faults ---- */

static void path_of(const struct havoc *h, const char *kind, char out[STAGE_PATH]) {
    int len = snprintf(out, STAGE_PATH, "%.400s/%s.%" PRIu32, h->stage.home, kind, h->round.number);
    ASSERT(len < STAGE_PATH);
}

static void describe(const struct round *r) {
    printf("# launch %" PRIu32 ": %" PRIu32 " processes, sleep %" PRIu32 " ms, %" PRIu32
           " lines, input %" PRIu32 ", code %" PRIu32 " of rank %" PRIu32 "%s%s; victim %s"
           " (n%" PRIu32 ", rank %" PRIu32 ") after %.1f ms%s; status %d after %.1f ms\n",
           r->number, r->procs, r->play.sleep_ms, r->play.lines, r->input, r->play.code,
           r->play.who, r->play.background ? ", background" : "", r->label ? ", labels" : "",
           victim_names[r->victim], r->node, r->rank, (double)r->delay_ns / 1e6,
           r->struck ? "" : " (not hit)", r->status, (double)r->took_ns / 1e6);
    for (uint32_t i = 0; i < r->mark_count; i++)
        printf("%s%c %" PRIu32 " pid %d n%" PRIu32 "%s", i % 8 == 0 ? "#   " : ", ",
               r->marks[i].kind, r->marks[i].rank, (int)r->marks[i].pid, r->marks[i].node,
               i % 8 == 7 || i + 1 == r->mark_count ? "\n" : "");
    stage_print("it said", r->said);
}

static __attribute__((format(printf, 2, 3))) void fault(struct havoc *h, const char *format, ...) {
    char words[400];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    printf("# FAULT in launch %" PRIu32 ": %s\n", h->round.number, words);
    describe(&h->round);
    tap_current_fail = true;
    h->faults++;
}

/* Everything that could tell why something stands still. */
static void tell_all(struct havoc *h) {
    static char said[STAGE_TEXT];
    struct stage *s = &h->stage;
    int status = stage_storm(s, said, "ps", NULL);
    stage_print("storm ps", said);
    for (const char *at = said; status == 0 && at != NULL && isdigit((unsigned char)*at);) {
        char job[16], show[STAGE_TEXT];
        snprintf(job, sizeof job, "%d", atoi(at));
        stage_storm(s, show, "show", job, NULL);
        stage_print("storm show", show);
        stage_storm(s, show, "why", job, NULL);
        stage_print("storm why", show);
        at = strchr(at, '\n');
        at = at == NULL ? NULL : at + 1 + strspn(at + 1, " ");
    }
    stage_storm(s, said, "nodes", NULL);
    stage_print("storm nodes", said);
    stage_log(s);
}

/* ---- marks ---- */

static void read_marks(struct havoc *h) {
    static char text[64 * 1024];
    char path[STAGE_PATH];
    struct round *r = &h->round;
    path_of(h, "marks", path);
    stage_read(path, text, sizeof text);
    r->mark_count = 0;
    for (const char *at = text; at != NULL && *at != '\0' && r->mark_count < MARKS_MAX;) {
        struct mark *m = &r->marks[r->mark_count];
        int pid;
        if (sscanf(at, "%c %" SCNu32 " %d %" SCNu32, &m->kind, &m->rank, &pid, &m->node) == 4) {
            m->pid = pid;
            r->mark_count++;
        }
        at = strchr(at, '\n');
        at = at == NULL ? NULL : at + 1;
    }
}

static uint32_t count_marks(const struct round *r, char kind, uint32_t rank) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->mark_count; i++)
        count += r->marks[i].kind == kind && r->marks[i].rank == rank;
    return count;
}

/* Everybody began once, and nobody was stopped before it was done. */
static bool all_done(const struct round *r) {
    for (uint32_t i = 0; i < r->procs; i++)
        if (count_marks(r, 'S', i) != 1 || count_marks(r, 'D', i) != 1)
            return false;
    return true;
}

/* Somebody on this node began and was not done. */
static bool cut_short(const struct round *r, uint32_t node) {
    for (uint32_t i = 0; i < r->mark_count; i++)
        if (r->marks[i].kind == 'S' && r->marks[i].node == node &&
            count_marks(r, 'D', r->marks[i].rank) == 0)
            return true;
    return false;
}

/* ---- a launch ---- */

static void draw_play(struct havoc *h, struct round *r) {
    struct random *x = &h->random;
    r->procs = 1 + (uint32_t)random_below(x, random_chance(x, 1, 3) ? PROCS_MAX : 4);
    r->play.sleep_ms = random_chance(x, 1, 2) ? 0 : (uint32_t)random_below(x, 301);
    if (random_chance(x, 1, 2)) {
        bool much = random_chance(x, 1, 3);
        r->play.lines = (uint32_t)random_below(x, (much ? OUTPUT_MAX : 4096) / STAGE_LINE);
    }
    if (random_chance(x, 1, 3))
        r->play.code = 1 + (uint32_t)random_below(x, 100);
    r->play.who = (uint32_t)random_below(x, r->procs);
    r->play.background = random_chance(x, 1, 4);
    r->play.reads = random_chance(x, 1, 4);
    if (r->play.reads && random_chance(x, 3, 4))
        r->input = (uint32_t)random_below(x, INPUT_MAX);
    r->label = random_chance(x, 1, 3) && !r->play.reads;
}

static void draw(struct havoc *h, uint32_t number) {
    struct random *x = &h->random;
    struct round *r = &h->round;
    *r = (struct round){.number = number, .node = NODES, .rank = PROCS_MAX};
    draw_play(h, r);
    do
        r->victim = (enum victim)random_below(x, VICTIMS);
    while ((h->only >> r->victim & 1) == 0);
    if (r->victim == VICTIM_PROCESS) /* most would be gone before they are found */
        r->play.sleep_ms += 100;
    uint64_t whole = r->play.sleep_ms * NS_PER_MS + 20 * NS_PER_MS;
    uint64_t kind = random_below(x, 3);
    if (kind == 0) /* while it is launched */
        r->delay_ns = random_below(x, 12 * NS_PER_MS);
    else if (kind == 1) /* any time */
        r->delay_ns = random_below(x, whole);
    else /* when it ends */
        r->delay_ns = whole - 18 * NS_PER_MS + random_below(x, 18 * NS_PER_MS);
}

static void make_input(const struct havoc *h, const char *path) {
    FILE *f = fopen(path, "we");
    struct random x;
    random_init(&x, h->round.number + 1);
    for (uint32_t i = 0; f != NULL && i < h->round.input; i++)
        fputc((int)(random_below(&x, 256)), f);
    if (f == NULL || fclose(f) != 0)
        _exit(96);
}

static pid_t begin(struct havoc *h) {
    char in[STAGE_PATH], out[STAGE_PATH], err[STAGE_PATH], marks[STAGE_PATH], each[STAGE_PATH + 4];
    char procs[16], name[16], word[6][16];
    struct round *r = &h->round;
    const uint32_t numbers[6] = {r->play.sleep_ms, r->play.lines, r->play.code,
                                 r->play.who,      r->play.reads, r->play.background};
    path_of(h, "in", in);
    path_of(h, "out", out);
    path_of(h, "err", err);
    path_of(h, "marks", marks);
    snprintf(each, sizeof each, "%s.%%r", out);
    snprintf(procs, sizeof procs, "%" PRIu32, r->procs);
    snprintf(name, sizeof name, "r%" PRIu32, r->number);
    for (int i = 0; i < 6; i++)
        snprintf(word[i], sizeof word[i], "%" PRIu32, numbers[i]);
    make_input(h, in);
    struct stage_io io = {.in = in, .out = out, .err = err};
    if (r->label)
        return stage_begin(&h->stage, &io, "run", "--name", name, "-n", procs, "-l", h->stage.self,
                           "--play", marks, word[0], word[1], word[2], word[3], word[4], word[5],
                           NULL);
    return stage_begin(&h->stage, &io, "run", "--name", name, "-n", procs, "-o", each,
                       h->stage.self, "--play", marks, word[0], word[1], word[2], word[3], word[4],
                       word[5], NULL);
}

/* ---- the victim ---- */

/* One of those who have begun and are not done; NULL if there is none. */
static const struct mark *draw_mark(struct havoc *h) {
    const struct round *r = &h->round;
    const struct mark *drawn = NULL;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < r->mark_count; i++)
        if (r->marks[i].kind == 'S' && count_marks(r, 'D', r->marks[i].rank) == 0 &&
            random_below(&h->random, ++seen) == 0)
            drawn = &r->marks[i];
    return drawn;
}

/* A process that is still of this launch. */
static bool strike_process(struct havoc *h) {
    struct round *r = &h->round;
    const struct mark *m = draw_mark(h);
    if (m == NULL)
        return false;
    int fd = (int)syscall(SYS_pidfd_open, m->pid, 0);
    if (fd < 0)
        return false;
    r->node = m->node;
    r->rank = m->rank;
    bool struck =
        stage_owns(&h->stage, m->pid) && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
    close(fd);
    return struck;
}

/* A daemon of a node that has to do with the launch, if there is one yet. */
static bool strike_node(struct havoc *h, const char *kind) {
    struct round *r = &h->round;
    char name[STAGE_COMM];
    r->node = (uint32_t)random_below(&h->random, NODES);
    if (r->mark_count > 0 && random_chance(&h->random, 7, 8))
        r->node = r->marks[random_below(&h->random, r->mark_count)].node;
    snprintf(name, sizeof name, "%sn%" PRIu32, kind, r->node);
    pid_t pid = stage_daemon(&h->stage, name);
    return pid != 0 && kill(pid, SIGKILL) == 0;
}

static bool strike(struct havoc *h, pid_t client) {
    pid_t manager;
    read_marks(h);
    if (h->round.victim != VICTIM_CLIENT && h->round.victim != VICTIM_PROCESS)
        stage_look(&h->stage);
    switch (h->round.victim) {
    case VICTIM_CLIENT:
        return kill(client, SIGKILL) == 0;
    case VICTIM_PROCESS:
        return strike_process(h);
    case VICTIM_LAUNCHER:
        return strike_node(h, "storm-pl ");
    case VICTIM_NODE:
        return strike_node(h, "storm-");
    case VICTIM_MANAGER:
        manager = stage_daemon(&h->stage, "storm-mm");
        return manager != 0 && kill(manager, SIGKILL) == 0;
    default:
        return false;
    }
}

static void run(struct havoc *h) {
    struct round *r = &h->round;
    char path[STAGE_PATH];
    uint64_t start = clock_ns();
    pid_t client = begin(h);
    int status = stage_wait(client, start + r->delay_ns);
    if (status == -ETIMEDOUT) {
        r->struck = strike(h, client);
        status = stage_wait(client, clock_ns() + HANG_NS);
    }
    r->took_ns = clock_ns() - start;
    r->status = status;
    h->struck[r->victim] += r->struck;
    if (r->took_ns > h->longest_ns && status != -ETIMEDOUT)
        h->longest_ns = r->took_ns;
    read_marks(h);
    path_of(h, "err", path);
    stage_read(path, r->said, sizeof r->said);
    if (status == -ETIMEDOUT) {
        fault(h, "it hangs");
        tell_all(h);
        kill(client, SIGKILL);
        waitpid(client, NULL, 0);
    }
}

/* ---- what it wrote ---- */

/* What a rank has to write, in a buffer that is good until the next call. */
static const char *expected_of(const struct havoc *h, uint32_t rank, size_t *ret_len) {
    static char text[INPUT_MAX + OUTPUT_MAX + STAGE_LINE + 1];
    const struct round *r = &h->round;
    size_t len = 0;
    struct random x;
    random_init(&x, r->number + 1);
    for (uint32_t i = 0; rank == 0 && r->play.reads && i < r->input; i++)
        text[len++] = (char)random_below(&x, 256);
    for (uint32_t i = 0; i < r->play.lines; i++, len += STAGE_LINE)
        stage_line(text + len, rank, i);
    *ret_len = len;
    return text;
}

static void compare(struct havoc *h, uint32_t rank, const char *got, size_t len, bool whole) {
    size_t want;
    const char *expected = expected_of(h, rank, &want);
    size_t same = 0;
    while (same < len && same < want && got[same] == expected[same])
        same++;
    if (same < len)
        fault(h, "rank %" PRIu32 " wrote %zu bytes, %zu came, wrong from %zu on", rank, want, len,
              same);
    else if (whole && len < want)
        fault(h, "rank %" PRIu32 " wrote %zu bytes, only %zu came", rank, want, len);
}

static void check_file(struct havoc *h, uint32_t rank, bool whole) {
    static char text[INPUT_MAX + OUTPUT_MAX + STAGE_LINE + 2];
    char path[STAGE_PATH], each[STAGE_PATH + 12];
    path_of(h, "out", path);
    snprintf(each, sizeof each, "%s.%" PRIu32, path, rank);
    size_t len = stage_read(each, text, sizeof text);
    compare(h, rank, text, len, whole);
    unlink(each);
}

/* Labelled lines of all ranks in one stream: taken apart. */
static void check_labels(struct havoc *h, bool whole) {
    static char all[PROCS_MAX * (OUTPUT_MAX + OUTPUT_MAX / 8)], one[OUTPUT_MAX + STAGE_LINE];
    char path[STAGE_PATH];
    path_of(h, "out", path);
    size_t total = stage_read(path, all, sizeof all), lines = 0, mine = 0;
    for (const char *at = all; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    for (uint32_t rank = 0; rank < h->round.procs; rank++) {
        size_t len = 0;
        for (const char *at = all; at < all + total;) {
            const char *end = strchr(at, '\n');
            const char *colon = strchr(at, ':');
            end = end == NULL ? all + total : end + 1;
            if (colon != NULL && colon < end && (uint32_t)atoi(at) == rank) {
                size_t more = (size_t)(end - (colon + 2));
                more = len + more > sizeof one ? sizeof one - len : more;
                memcpy(one + len, colon + 2, more);
                len += more;
                mine++;
            }
            at = end;
        }
        if (!whole && len > 0 && one[len - 1] == '\n' && len % STAGE_LINE != 0)
            len--; /* the rest of a line that was cut, ended for those who read it */
        compare(h, rank, one, len, whole);
    }
    if (lines > mine)
        fault(h, "%zu lines came, %zu of them belong to somebody", lines, mine);
}

static void check_output(struct havoc *h, bool whole) {
    char path[STAGE_PATH];
    if (h->round.label)
        check_labels(h, whole);
    else
        for (uint32_t i = 0; i < h->round.procs; i++)
            check_file(h, i, whole);
    static const char *const kinds[] = {"in", "out", "err"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        path_of(h, kinds[i], path);
        unlink(path);
    }
}

/* ---- the verdict ---- */

/* As if nobody had been killed. */
static void check_normal(struct havoc *h) {
    const struct round *r = &h->round;
    if (r->status != (int)r->play.code)
        fault(h, "its status should be %" PRIu32, r->play.code);
    else if (!all_done(r))
        fault(h, "not every process was there once and done");
    else if (r->said[0] != '\0')
        fault(h, "there was nothing to say");
    check_output(h, true);
}

static void check_process(struct havoc *h) {
    const struct round *r = &h->round;
    char words[80];
    if (!r->struck || (count_marks(r, 'D', r->rank) > 0 && r->status != 128 + SIGKILL)) {
        check_normal(h);
        return;
    }
    snprintf(words, sizeof words, "rank %" PRIu32 " on n%" PRIu32 " killed by signal 9", r->rank,
             r->node);
    if (r->status != 128 + SIGKILL)
        fault(h, "its status should be %d", 128 + SIGKILL);
    else if (strstr(r->said, words) == NULL)
        fault(h, "it should say `%s`", words);
    check_output(h, false);
}

static void check_launcher(struct havoc *h) {
    const struct round *r = &h->round;
    char words[80];
    if (!r->struck || (r->status != 125 && !cut_short(r, r->node))) {
        check_normal(h);
        return;
    }
    snprintf(words, sizeof words, "node n%" PRIu32 " was lost", r->node);
    if (r->status != 125)
        fault(h, "its status should be 125");
    else if (strstr(r->said, words) == NULL)
        fault(h, "it should say `%s`", words);
    check_output(h, false);
}

/* Nothing that the marks tell of is left. */
static void check_gone(struct havoc *h) {
    const struct round *r = &h->round;
    for (uint32_t i = 0; i < r->mark_count; i++)
        if (r->marks[i].kind != 'D' && stage_owns(&h->stage, r->marks[i].pid))
            fault(h, "process %d of rank %" PRIu32 " lives", (int)r->marks[i].pid,
                  r->marks[i].rank);
}

static void judge(struct havoc *h) {
    struct round *r = &h->round;
    for (uint32_t i = 0; i < r->procs; i++)
        if (count_marks(r, 'S', i) > 1)
            fault(h, "rank %" PRIu32 " began %" PRIu32 " times", i, count_marks(r, 'S', i));
    h->expected[r->number] = r->status;
    if (r->victim == VICTIM_CLIENT && r->struck && r->status == 128 + SIGKILL) {
        h->expected[r->number] = -1;
        check_output(h, false);
        return;
    }
    h->by_status[r->status & 255]++;
    if (r->status == -ETIMEDOUT)
        return;
    check_gone(h);
    if (r->victim == VICTIM_PROCESS)
        check_process(h);
    else if (r->victim == VICTIM_LAUNCHER)
        check_launcher(h);
    else
        check_normal(h);
}

/* ---- calm ---- */

static bool nobody_waits(struct havoc *h) {
    static char said[STAGE_TEXT];
    if (stage_storm(&h->stage, said, "ps", "--json", NULL) != 0 || strncmp(said, "[]", 2) != 0)
        return false;
    if (stage_storm(&h->stage, said, "nodes", "--json", NULL) != 0)
        return false;
    uint32_t up = 0;
    for (const char *at = said; (at = strstr(at, "\"state\":\"up\",\"pes\":2,\"used\":0,")) != NULL;
         at++)
        up++;
    return up == NODES;
}

/* A launcher keeps as many cgroups as it ever needed at once: two more than at the first look, perhaps. */
enum { POOLED = 4 };

/* As many descriptors as at the start, by name of daemon; the places are those of the first look. */
static bool all_closed(struct havoc *h, bool say) {
    bool same = true;
    stage_look(&h->stage);
    if (h->stage.daemon_count != 2 * NODES + 2)
        return false;
    for (uint32_t i = 0; i < h->stage.daemon_count; i++) {
        const struct stage_daemon *d = &h->stage.daemons[i];
        uint32_t n = (uint32_t)atoi(d->name + (d->name[6] == 'p' ? 10 : 7));
        uint32_t place = strcmp(d->name, "storm-mm") == 0       ? 2 * NODES
                         : strcmp(d->name, "storm-scribe") == 0 ? 2 * NODES + 1
                         : d->name[6] == 'p'                    ? n
                                                                : NODES + n;
        uint32_t now = stage_descriptors(d->pid);
        if (h->descriptors[place] == 0)
            h->descriptors[place] = now + (d->name[6] == 'p' ? POOLED : 0);
        if (now > h->descriptors[place]) {
            same = false;
            if (!say)
                continue;
            printf("# %s has %" PRIu32 " descriptors, should have %" PRIu32 "\n", d->name, now,
                   h->descriptors[place]);
            stage_tell_descriptors(d->pid);
        }
    }
    return same;
}

static bool nothing_left(struct havoc *h) {
    struct stage *s = &h->stage;
    return stage_count(s, stage_owns) == 0 && stage_count(s, stage_zombie) == 0 &&
           (s->group[0] == '\0' || stage_grouped(s->group) == 0);
}

/* Commands that have just asked may still be on the manager's hands for a moment: all is tried again. */
static void calm(struct havoc *h) {
    uint64_t end = clock_ns() + SETTLE_NS;
    bool waits = false, left = false, open = false;
    do {
        bool last = clock_ns() >= end;
        waits = !nobody_waits(h);
        left = !nothing_left(h);
        open = !all_closed(h, last);
        if (!waits && !left && !open)
            return;
        if (last)
            break;
    } while (poll(NULL, 0, 50) == 0);
    fault(h, "no calm: %s%s%s", waits ? "jobs or nodes, " : "", left ? "processes, " : "",
          open ? "descriptors" : "");
    struct stage *s = &h->stage;
    printf("# %u processes of jobs, %u zombies, %u in groups\n", stage_count(s, stage_owns),
           stage_count(s, stage_zombie), s->group[0] == '\0' ? 0 : stage_grouped(s->group));
    tell_all(h);
}

/* ---- the log ---- */

enum { EVENT_SUBMIT, EVENT_START, EVENT_END };
enum { HEAD_BYTES = 1 + 4 + 4 + 8 };

/* The launch that a submission is from, by its name. */
static uint32_t launch_of(struct bytes event) {
    uint64_t storage[2][1];
    struct nodeset sets[2];
    union message m;
    char name[16];
    for (int i = 0; i < 2; i++)
        nodeset_init(&sets[i], NODES + 1, storage[i]);
    struct bytes body = bytes_of(event.at + HEAD_BYTES, event.len - HEAD_BYTES);
    if (message_decode(MESSAGE_SUBMIT, body, sets, &m) < 0 || m.submit.name.len >= sizeof name)
        return UINT32_MAX;
    snprintf(name, sizeof name, "%.*s", (int)m.submit.name.len, (const char *)m.submit.name.at);
    return name[0] == 'r' ? (uint32_t)atoi(name + 1) : UINT32_MAX;
}

/* The events of one job: one submission, one end, and that is what the command has said. */
struct file {
    uint64_t key;
    uint32_t launch, ends, submits;
    int status;
};

static void close_file(struct havoc *h, const struct file *f) {
    if (f->key <= 1 || f->submits == 0)
        return; /* 1 is the one of the warming up */
    h->jobs++;
    h->round = (struct round){.number = f->launch};
    if (f->launch >= h->launches) {
        fault(h, "job %" PRIu64 " is of no launch", f->key);
        return;
    }
    int expected = h->expected[f->launch];
    if (h->found[f->launch]++ > 0)
        fault(h, "it has another job, %" PRIu64, f->key);
    if (f->submits != 1 || f->ends != 1)
        fault(h, "job %" PRIu64 " has %" PRIu32 " submissions and %" PRIu32 " ends", f->key,
              f->submits, f->ends);
    else if (expected >= 0 && expected != f->status)
        fault(h, "job %" PRIu64 " has status %d, the command said %d", f->key, f->status, expected);
}

static void read_event(struct file *f, struct bytes event) {
    if (event.len < HEAD_BYTES)
        return;
    uint8_t kind = event.at[0];
    if (kind == EVENT_SUBMIT) {
        f->submits++;
        f->launch = launch_of(event);
    } else if (kind == EVENT_END && event.len >= HEAD_BYTES + 6) {
        f->ends++;
        f->status = (int)load_le32(event.at + HEAD_BYTES + 2);
    }
}

static void check_log(struct havoc *h) {
    char path[STAGE_PATH + 32];
    sqlite3 *db = NULL;
    sqlite3_stmt *all = NULL;
    struct file f = {0};
    snprintf(path, sizeof path, "%s/local/state.db", h->stage.home);
    if (!CHECK_EQ(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK) ||
        !CHECK_EQ(sqlite3_prepare_v2(db, "SELECT key, body FROM events ORDER BY key, seq", -1, &all,
                                     NULL),
                  SQLITE_OK)) {
        sqlite3_close(db);
        return;
    }
    while (sqlite3_step(all) == SQLITE_ROW) {
        uint64_t key = (uint64_t)sqlite3_column_int64(all, 0);
        if (key != f.key) {
            close_file(h, &f);
            f = (struct file){.key = key, .launch = UINT32_MAX, .status = -1};
        }
        const void *body = sqlite3_column_blob(all, 1);
        read_event(&f, bytes_of(body, (size_t)sqlite3_column_bytes(all, 1)));
    }
    close_file(h, &f);
    sqlite3_finalize(all);
    sqlite3_close(db);
    for (uint32_t i = 0; i < h->launches; i++) {
        h->round = (struct round){.number = i};
        if (h->found[i] == 0 && h->expected[i] >= 0)
            fault(h, "the log has no job of it");
    }
}

/* Daemons die because we kill them, and for no other reason. */
static void check_deaths(struct havoc *h) {
    static char text[4 << 20];
    char path[STAGE_PATH + 32];
    uint32_t deaths = 0, killed = 0;
    snprintf(path, sizeof path, "%s/local/log", h->stage.home);
    stage_read(path, text, sizeof text);
    for (const char *at = text; (at = strstr(at, " ended (")) != NULL; at++) {
        deaths++;
        killed += strncmp(at, " ended (signal 9)", 17) == 0;
    }
    CHECK_EQ(deaths, killed);
    CHECK_EQ(killed,
             h->struck[VICTIM_LAUNCHER] + h->struck[VICTIM_NODE] + h->struck[VICTIM_MANAGER]);
    if (!CHECK(strstr(text, "assertion failed") == NULL) || deaths != killed)
        stage_log(&h->stage);
}

/* ---- all of it ---- */

static void tell(const struct havoc *h, uint64_t took_ns) {
    printf("## %" PRIu32 " launches in %.0f s; killed:", h->launches, (double)took_ns / 1e9);
    for (int i = VICTIM_CLIENT; i < VICTIMS; i++)
        printf(" %s %" PRIu32 "%s", victim_names[i], h->struck[i], i + 1 < VICTIMS ? "," : "");
    uint32_t other = 0;
    for (int i = 1; i < 256; i++)
        other += i == 125 || i == 137 ? 0 : h->by_status[i];
    printf("; status 0: %" PRIu32 ", 125: %" PRIu32 ", 137: %" PRIu32 ", other %" PRIu32
           "; the longest took %.1f s; %" PRIu32 " jobs in the log\n",
           h->by_status[0], h->by_status[125], h->by_status[137], other,
           (double)h->longest_ns / 1e9, h->jobs);
    fflush(stdout);
}

/* Everything that is made once and kept, before descriptors are counted. */
static bool warm_up(struct havoc *h) {
    static char said[STAGE_TEXT];
    int status = stage_storm(&h->stage, said, "run", "--name", "warm", "-N", "8", "-n", "16",
                             "/bin/true", NULL);
    if (!CHECK_EQ(status, 0)) {
        stage_print("storm run", said);
        return false;
    }
    calm(h);
    return true;
}

static void draw_havoc(struct havoc *h) {
    uint64_t seed = stage_number("STORM_SEED", clock_ns() % 1000000);
    const char *only = getenv("STORM_HAVOC_VICTIM");
    printf("# STORM_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    random_init(&h->random, seed);
    h->launches = (uint32_t)stage_number("STORM_HAVOC", LAUNCHES);
    h->only = only == NULL ? (1U << VICTIMS) - 1 : 0;
    for (int i = 0; only != NULL && i < VICTIMS; i++)
        h->only |= (strstr(only, victim_names[i]) != NULL) << i;
    h->expected = calloc(h->launches, sizeof *h->expected);
    h->found = calloc(h->launches, sizeof *h->found);
    ASSERT(h->only != 0 && h->expected != NULL && h->found != NULL);
}

static void play_havoc(struct havoc *h) {
    uint64_t start = clock_ns();
    uint32_t i = 0;
    for (; i < h->launches && h->faults < FAULTS_MAX; i++) {
        draw(h, i);
        run(h);
        judge(h);
        if (i % CALM_EVERY == CALM_EVERY - 1)
            calm(h);
        if (i % 100 == 99) {
            printf("# %" PRIu32 " launches, %.0f s\n", i + 1, (double)(clock_ns() - start) / 1e9);
            fflush(stdout);
        }
    }
    CHECK_EQ(i, h->launches);
    h->launches = i;
    calm(h);
    stage_down(&h->stage);
    check_deaths(h);
    check_log(h);
    tell(h, clock_ns() - start);
}

static const char *storm_path;

static void test_somebody_is_killed_in_every_launch(void) {
    struct havoc *h = calloc(1, sizeof *h);
    if (!CHECK(h != NULL))
        return;
    stage_init(&h->stage, storm_path);
    draw_havoc(h);
    if (stage_up(&h->stage, NODES, PES, ORPHAN) && warm_up(h))
        play_havoc(h);
    else
        stage_down(&h->stage);
    stage_leave(&h->stage, tap_current_fail);
    free(h->expected);
    free(h->found);
    free(h);
}

int main(int argc, char **argv) {
    if (argc == 9 && strcmp(argv[1], "--play") == 0)
        return play(argv);
    if (argc != 2) {
        fprintf(stderr, "usage: havoc_test STORM\n");
        return 2;
    }
    storm_path = argv[1];
    TEST(test_somebody_is_killed_in_every_launch);
    return tap_finish();
}
