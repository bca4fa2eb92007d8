/* SPDX-License-Identifier: MIT */
/* A cluster of real processes: it comes up, loses nodes and its root, and leaves nothing behind.
 *
 * 12 nodes in a binary tree: below the root (12) are 0 and 7; below 0 are 1 and 4, which have two
 * leaves each; below 7 are 8 and 11, of which 8 has the leaves 9 and 10. */
#include <malloc.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "os/store.h"
#include "ensemble.h"
#include "turns.h"

enum { NODES = 12, INNER = 0, LEAF = 5, PROCESSES = NODES + 1 };

#define IDLE_BYTES_MAX (1 * MIB)

/* ---- what a process holds ---- */

enum { HELD_MAX = 64 };

struct held {
    uint32_t stdio, epolls, timers, stores, eventfds, sockets, others;
    uint64_t socket[HELD_MAX];  /* inodes */
    uint64_t eventfd[HELD_MAX]; /* numbers that the kernel gives them */
};

static uint64_t eventfd_number(pid_t pid, const char *fd) {
    char path[300], line[256];
    unsigned long long number = UINT64_MAX;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", (int)pid, fd);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        sscanf(line, "eventfd-id: %llu", &number);
    if (f != NULL)
        fclose(f);
    return number;
}

static void sort_in(struct held *h, pid_t pid, const char *fd, const char *what,
                    const char *store) {
    unsigned long long inode;
    if (atoi(fd) <= 2)
        h->stdio++;
    else if (strcmp(what, "anon_inode:[eventpoll]") == 0)
        h->epolls++;
    else if (strcmp(what, "anon_inode:[timerfd]") == 0)
        h->timers++;
    else if (strcmp(what, store) == 0)
        h->stores++;
    else if (strcmp(what, "anon_inode:[eventfd]") == 0 && h->eventfds < HELD_MAX)
        h->eventfd[h->eventfds++] = eventfd_number(pid, fd);
    else if (sscanf(what, "socket:[%llu]", &inode) == 1 && h->sockets < HELD_MAX)
        h->socket[h->sockets++] = inode;
    else if (h->others++ == 0 && store[0] != '\0')
        printf("#   %d holds %s\n", (int)pid, what);
}

static struct held look_at(pid_t pid, const char *store) {
    struct held h = {0};
    char path[64], what[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        char link[400];
        snprintf(link, sizeof link, "%s/%s", path, e->d_name);
        ssize_t len = readlink(link, what, sizeof what - 1);
        if (len < 0)
            continue;
        what[len] = '\0';
        sort_in(&h, pid, e->d_name, what, store);
    }
    if (dir != NULL)
        closedir(dir);
    return h;
}

static uint32_t shared_count(const uint64_t *a, uint32_t a_count, const uint64_t *b,
                             uint32_t b_count) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < a_count; i++)
        for (uint32_t k = 0; k < b_count; k++)
            count += a[i] == b[k];
    return count;
}

/* Looks at all of them. True if each has its listener and, of the links that it says it has, both lanes:
 * detours and closed connections are over. */
static bool look_at_all(const struct ensemble *t, struct held all[PROCESSES]) {
    bool settled = true;
    for (uint32_t n = 0; n < PROCESSES; n++) {
        char store[PATH_MAX + 32];
        snprintf(store, sizeof store, "%s/n%u/state", crew_folder(t->crew), n);
        all[n] = look_at(crew_pid(t->crew, n), store);
        uint32_t links = t->stage->stands[n].children + (n != t->root);
        settled = settled && all[n].sockets == 1 + LANES * links;
    }
    return settled;
}

/* Every process holds its own things and nothing of another's: no socket is in two processes. */
static void check_nothing_inherited(struct ensemble *t) {
    static struct held all[PROCESSES];
    CHECK(ENSEMBLE_UNTIL(t, look_at_all(t, all)));
    for (uint32_t n = 0; n < PROCESSES; n++) {
        CHECK_EQ(all[n].stdio, 3);
        CHECK_EQ(all[n].epolls, 1);
        CHECK_EQ(all[n].timers, 1);
        CHECK_EQ(all[n].stores, 1);
        CHECK_EQ(all[n].eventfds, 3); /* poke, bell, end of a write */
        CHECK_EQ(all[n].others, 0);
    }
    struct held own = look_at(getpid(), "");
    for (uint32_t n = 0; n < PROCESSES; n++) {
        CHECK_EQ(shared_count(all[n].socket, all[n].sockets, own.socket, own.sockets), 0);
        CHECK_EQ(shared_count(all[n].eventfd, 3, own.eventfd, own.eventfds), 2); /* poke, bell */
        for (uint32_t k = 0; k < n; k++) {
            CHECK_EQ(shared_count(all[n].socket, all[n].sockets, all[k].socket, all[k].sockets), 0);
            CHECK_EQ(shared_count(all[n].eventfd, 3, all[k].eventfd, 3), 1); /* the bell */
        }
    }
}

static void check_idle_memory(const struct ensemble *t) {
    uint64_t most = 0;
    for (uint32_t n = 0; n < PROCESSES; n++) {
        uint64_t bytes = process_private_bytes(crew_pid(t->crew, n));
        CHECK(bytes > 0);
        most = bytes > most ? bytes : most;
    }
    if (!SANITIZED)
        CHECK(most <= IDLE_BYTES_MAX);
    printf("# idle: at most %llu KiB of private memory\n", (unsigned long long)(most / KIB));
}

/* ---- coming up ---- */

static void check_bring_up(enum transport links) {
    struct ensemble t;
    ensemble_init(&t, links, NODES, 0);
    if (ensemble_start(&t)) {
        check_idle_memory(&t);
        check_nothing_inherited(&t);
        CHECK(ensemble_ask_some(&t, 50));
        CHECK_EQ(ensemble_done(&t), t.stage->asked);
        for (uint32_t n = 0; n < PROCESSES; n++) {
            CHECK_EQ(crew_lives(t.crew, n), 1);
            CHECK_EQ(memcmp(crew_heap(t.crew, n), "some words for everyone", 23), 0);
            CHECK(crew_counts(t.crew, n)->links.messages > 0);
        }
    }
    ensemble_end(&t);
}

static void test_comes_up_on_unix_sockets(void) {
    check_bring_up(TRANSPORT_UNIX);
}

static void test_comes_up_on_tcp(void) {
    check_bring_up(TRANSPORT_TCP);
}

static uint64_t signals_of(pid_t pid, const char *which) {
    char path[64], line[256];
    unsigned long long set = UINT64_MAX;
    size_t len = strlen(which);
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, which, len) == 0)
            sscanf(line + len, " %llx", &set);
    if (f != NULL)
        fclose(f);
    return set;
}

static uint64_t bit_of(int signal) {
    return (uint64_t)1 << (signal - 1);
}

/* Those between the last ordinary and the first real-time signal belong to the C library, which lets
 * nobody change them. */
static const uint64_t c_library_signals = (uint64_t)3 << 31;

static void on_signal(int signal) {
    (void)signal;
}

/* The parent blocks one signal, ignores another and handles a third: its children do none of that. */
static void test_signals_are_not_inherited(void) {
    struct ensemble t;
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, on_signal);
    ensemble_init(&t, TRANSPORT_UNIX, NODES, 0);
    if (ensemble_start(&t)) {
        for (uint32_t n = 0; n < PROCESSES; n++) {
            pid_t pid = crew_pid(t.crew, n);
            CHECK_EQ(signals_of(pid, "SigBlk:"), 0);
            CHECK_EQ(signals_of(pid, "SigIgn:") & ~c_library_signals, bit_of(SIGPIPE));
            CHECK_EQ(signals_of(pid, "SigCgt:") & bit_of(SIGUSR1), 0);
        }
        CHECK_EQ(crew_signal(t.crew, LEAF, SIGTERM), 0);
        CHECK(ENSEMBLE_UNTIL(&t, crew_pid(t.crew, LEAF) == 0));
    }
    ensemble_end(&t);
    signal(SIGHUP, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* ---- losing nodes ---- */

static bool all_others_up(const struct ensemble *t, uint32_t node) {
    return atomic_load(&t->stage->up) == NODES && !atomic_load(&t->stage->is_up[node]);
}

static void check_lost_and_found(enum transport links, uint32_t node) {
    struct ensemble t;
    ensemble_init(&t, links, NODES, 0);
    if (ensemble_start(&t)) {
        uint64_t before = t.stage->stands[node].incarnation;
        crew_kill(t.crew, node);
        CHECK_EQ(crew_pid(t.crew, node), 0);
        CHECK_EQ(crew_signal(t.crew, node, SIGKILL), -ESRCH);
        CHECK(ENSEMBLE_UNTIL(&t, all_others_up(&t, node)));
        CHECK_EQ(crew_pid(t.crew, node), 0); /* it is not the root */
        atomic_store(&t.stage->stands[node].attached, false);
        CHECK_EQ(crew_start(t.crew, node), 0);
        CHECK(ENSEMBLE_UNTIL(&t, ensemble_whole(&t)));
        CHECK_EQ(crew_lives(t.crew, node), 2);
        CHECK(t.stage->stands[node].incarnation > before);
        CHECK(ensemble_ask_some(&t, 20));
        CHECK_EQ(t.stage->outcomes[OUTCOME_DONE], t.stage->asked);
        check_nothing_inherited(&t); /* though it has made its own listener this time */
    }
    ensemble_end(&t);
}

static void test_leaf_dies(void) {
    check_lost_and_found(TRANSPORT_UNIX, LEAF);
}

static void test_inner_node_dies(void) {
    check_lost_and_found(TRANSPORT_TCP, INNER);
}

/* A node that dies on its own is noticed and reaped. */
static void test_death_is_noticed(void) {
    struct ensemble t;
    ensemble_init(&t, TRANSPORT_UNIX, NODES, 0);
    if (ensemble_start(&t)) {
        pid_t pid = crew_pid(t.crew, LEAF);
        CHECK_EQ(kill(pid, SIGKILL), 0);
        CHECK(ENSEMBLE_UNTIL(&t, crew_pid(t.crew, LEAF) == 0));
        CHECK(kill(pid, 0) < 0 && errno == ESRCH); /* no zombie */
    }
    ensemble_end(&t);
}

/* ---- the root ---- */

static struct kept kept_of(const char *folder, uint32_t node) {
    char path[PATH_MAX + 16];
    struct store s;
    struct kept kept = {0};
    snprintf(path, sizeof path, "%s/n%u", folder, node);
    if (CHECK_EQ(store_open(&s, path), 0))
        kept = s.kept;
    store_close(&s);
    return kept;
}

static void remove_crew_folder(const char *folder) {
    for (uint32_t n = 0; n < PROCESSES; n++) {
        char path[PATH_MAX + 16];
        snprintf(path, sizeof path, "%s/n%u", folder, n);
        folder_remove(path);
    }
    folder_remove(folder);
}

static bool epoch_everywhere(const struct ensemble *t, uint32_t epoch) {
    for (uint32_t n = 0; n < PROCESSES; n++)
        if (t->stage->stands[n].epoch != epoch)
            return false;
    return true;
}

/* Killed three times: back each time with the next epoch, and the store remembers it. */
static void test_root_comes_back(void) {
    char folder[PATH_MAX];
    struct ensemble t;
    folder_make(folder);
    ensemble_init(&t, TRANSPORT_TCP, NODES, 0);
    t.config.folder = folder;
    if (ensemble_start(&t)) {
        CHECK(epoch_everywhere(&t, 1));
        for (uint32_t epoch = 2; epoch <= 4; epoch++) {
            CHECK_EQ(crew_signal(t.crew, t.root, SIGKILL), 0);
            CHECK(ENSEMBLE_UNTIL(&t, crew_lives(t.crew, t.root) == epoch));
            CHECK(ENSEMBLE_UNTIL(&t, epoch_everywhere(&t, epoch) && ensemble_whole(&t)));
            CHECK(ensemble_ask_some(&t, 10));
        }
        check_nothing_inherited(&t);
        for (uint32_t n = 0; n < NODES; n++)
            CHECK_EQ(crew_lives(t.crew, n), 1);
    }
    ensemble_end(&t);
    CHECK_EQ(kept_of(folder, NODES).epoch, 4);
    CHECK_EQ(kept_of(folder, NODES).boots, 4);
    CHECK_EQ(kept_of(folder, LEAF).epoch, 0);
    CHECK_EQ(kept_of(folder, LEAF).boots, 1);
    CHECK_EQ(kept_of(folder, LEAF).value >> 32, 4); /* the last epoch that it was a member of */
    remove_crew_folder(folder);
}

/* Killed on purpose it stays down; but only until it is started. */
static void test_root_that_was_taken_down(void) {
    struct ensemble t;
    ensemble_init(&t, TRANSPORT_UNIX, NODES, 0);
    if (ensemble_start(&t)) {
        crew_kill(t.crew, t.root);
        for (int i = 0; i < 20; i++)
            crew_wait(t.crew, 1);
        CHECK_EQ(crew_pid(t.crew, t.root), 0);
        CHECK_EQ(crew_start(t.crew, t.root), 0);
        CHECK(ENSEMBLE_UNTIL(&t, epoch_everywhere(&t, 2) && ensemble_whole(&t)));
    }
    ensemble_end(&t);
}

/* Its store is damaged, so it cannot start. It is tried again with growing pauses, not in a frenzy,
 * and once the store is repaired it is back by itself. */
static void test_root_that_cannot_start(void) {
    char path[PATH_MAX + 32];
    uint8_t state[128], zero[128] = {0};
    struct ensemble t;
    ensemble_init(&t, TRANSPORT_UNIX, NODES, 0);
    if (ensemble_start(&t)) {
        snprintf(path, sizeof path, "%s/n%u/state", crew_folder(t.crew), t.root);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        CHECK_EQ(pread(fd, state, sizeof state, 0), sizeof state);
        CHECK_EQ(pwrite(fd, zero, sizeof zero, 0), sizeof zero);
        uint64_t begin = clock_ns();
        CHECK_EQ(crew_signal(t.crew, t.root, SIGKILL), 0);
        CHECK(ENSEMBLE_UNTIL(&t, crew_lives(t.crew, t.root) >=
                                     6)); /* two at once, then 50 ms, 100 ... */
        uint64_t took = clock_ns() - begin;
        CHECK(took >= (50 + 100 + 200) * NS_PER_MS);
        CHECK_EQ(pwrite(fd, state, sizeof state, 0), sizeof state);
        close(fd);
        CHECK(ENSEMBLE_UNTIL(&t, epoch_everywhere(&t, 2) && ensemble_whole(&t)));
    }
    ensemble_end(&t);
}

/* ---- the parent ---- */

/* Runs in a process of its own; shows the children's numbers, then waits for its end. */
static _Noreturn void parent_of_many(pid_t *pids, const char *folder) {
    struct ensemble t;
    ensemble_init(&t, TRANSPORT_UNIX, NODES, 0);
    t.config.folder = folder;
    ensemble_start(&t);
    for (uint32_t n = 0; n < PROCESSES; n++)
        pids[n + 1] = crew_pid(t.crew, n);
    pids[0] = tap_current_fail ? -1 : 1;
    for (;;)
        crew_wait(t.crew, -1);
}

/* Reaps whoever has become our child; true when there is nobody left. */
static bool nobody_left(void) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        ;
    return pid < 0 && errno == ECHILD;
}

static void test_parent_dies(void) {
    pid_t *pids = mmap(NULL, (PROCESSES + 1) * sizeof *pids, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char folder[PATH_MAX];
    struct loop idle;
    folder_make(folder);
    CHECK_EQ(loop_init(&idle), 0);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    fflush(stdout);
    pid_t parent = fork();
    if (parent == 0)
        parent_of_many(pids, folder);
    CHECK(TURN_UNTIL(&idle, , *(volatile pid_t *)pids != 0));
    CHECK_EQ(pids[0], 1);
    CHECK_EQ(kill(parent, SIGKILL), 0);
    CHECK(TURN_UNTIL(&idle, , nobody_left()));
    for (uint32_t n = 0; n < PROCESSES; n++)
        CHECK(kill(pids[n + 1], 0) < 0 && errno == ESRCH);
    loop_fini(&idle);
    remove_crew_folder(folder);
    munmap(pids, (PROCESSES + 1) * sizeof *pids);
}

/* ---- an old kernel ---- */

/* Calls that newer kernels have are not there. */
static bool forget_new_calls(void) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
    struct sock_fprog all = {.len = 5, .filter = program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

/* In a process of its own, as calls that are forgotten stay so. Status 2: this cannot be tried. */
static _Noreturn void live_in_the_past(void) {
    struct ensemble t;
    if (!forget_new_calls())
        _exit(2);
    struct rlimit few = {.rlim_cur = 512, .rlim_max = 512}; /* or closing them all takes long */
    setrlimit(RLIMIT_NOFILE, &few);
    ensemble_init(&t, TRANSPORT_UNIX, NODES, 0);
    if (ensemble_start(&t)) {
        check_nothing_inherited(&t);
        CHECK_EQ(crew_signal(t.crew, t.root, SIGKILL), 0);
        CHECK(ENSEMBLE_UNTIL(&t, epoch_everywhere(&t, 2) && ensemble_whole(&t)));
        crew_kill(t.crew, LEAF);
        CHECK_EQ(crew_pid(t.crew, LEAF), 0);
        CHECK_EQ(kill(crew_pid(t.crew, INNER), SIGKILL), 0);
        CHECK(crew_wait(t.crew, -1) == 1);
        CHECK_EQ(crew_pid(t.crew, INNER), 0);
    }
    ensemble_end(&t);
    fflush(stdout);
    _exit(tap_current_fail);
}

static int run_in_the_past(void) {
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        live_in_the_past();
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int past_status;

static void test_kernel_without_pidfds(void) {
    CHECK_EQ(past_status, 0);
}

int main(void) {
    mallopt(M_PERTURB, 0); /* would touch pages that nobody needs */
    TEST(test_comes_up_on_unix_sockets);
    TEST(test_comes_up_on_tcp);
    TEST(test_signals_are_not_inherited);
    TEST(test_leaf_dies);
    TEST(test_inner_node_dies);
    TEST(test_death_is_noticed);
    TEST(test_root_comes_back);
    TEST(test_root_that_was_taken_down);
    TEST(test_root_that_cannot_start);
    TEST(test_parent_dies);
    past_status = run_in_the_past();
    if (past_status == 2)
        SKIP("test_kernel_without_pidfds", "system calls cannot be filtered here");
    else
        TEST(test_kernel_without_pidfds);
    return tap_finish();
}
