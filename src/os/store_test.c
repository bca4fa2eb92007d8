/* SPDX-License-Identifier: MIT */
/* What must not be forgotten: through restarts, torn and damaged files, full disks, two at once. */
#include "os/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/list.h"
#include "turns.h"

enum { COPY_BYTES = 64 }; /* as the file has them: two */

/* ---- lives ---- */

/* One life: what was kept before it, and then its begin. */
static struct kept begin(const char *folder, bool root) {
    struct store s;
    struct kept kept = {0};
    if (CHECK_EQ(store_open(&s, folder), 0)) {
        CHECK_EQ(store_begin(&s, root), 0);
        kept = s.kept;
    }
    store_close(&s);
    return kept;
}

static void test_fresh(void) {
    char folder[PATH_MAX], path[PATH_MAX];
    struct store s;
    struct stat at;
    folder_make(folder);
    CHECK_EQ(store_open(&s, folder), 0);
    CHECK_EQ(s.kept.boots, 0);
    CHECK_EQ(s.kept.epoch, 0);
    CHECK_EQ(s.kept.value, 0);
    CHECK(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(stat(folder_file(folder, "state", path), &at), 0);
    CHECK_EQ(at.st_size, 2 * COPY_BYTES);
    CHECK_EQ(at.st_mode & 077, 0);
    CHECK_EQ(stat(folder_file(folder, "state.new", path), &at), -1);
    store_close(&s);
    store_close(&s); /* twice does no harm */
    folder_remove(folder);
}

static void test_boots_and_epochs_count_up(void) {
    char folder[PATH_MAX];
    folder_make(folder);
    for (uint32_t i = 1; i <= 9; i++) {
        struct kept k = begin(folder, i % 3 == 0);
        CHECK_EQ(k.boots, i);
        CHECK_EQ(k.epoch, i / 3);
        CHECK_EQ(k.value, 0);
    }
    folder_remove(folder);
}

/* Who has lost what it knew is told how often it has started at least; never that it was less. */
static void test_raised(void) {
    char folder[PATH_MAX];
    struct store s;
    folder_make(folder);
    CHECK_EQ(store_open(&s, folder), 0);
    CHECK_EQ(store_raise(&s, 40), 0);
    CHECK_EQ(store_raise(&s, 7), 0);
    store_close(&s);
    CHECK_EQ(begin(folder, false).boots, 41);
    folder_remove(folder);
}

static void test_no_folder(void) {
    char folder[PATH_MAX], path[PATH_MAX], name[PATH_MAX];
    struct store s;
    folder_make(folder);
    CHECK_EQ(store_open(&s, folder_file(folder, "missing", path)), -ENOENT);
    CHECK_EQ(s.fd, -1);
    memset(name, 'a', sizeof name);
    name[PATH_MAX - 1] = '\0';
    CHECK_EQ(store_open(&s, name), -ENAMETOOLONG);
    folder_remove(folder);
}

/* ---- damage ---- */

static void damage(const char *folder, size_t from, size_t len) {
    char path[PATH_MAX];
    uint8_t bytes[2 * COPY_BYTES];
    int fd = open(folder_file(folder, "state", path), O_RDWR | O_CLOEXEC);
    CHECK_EQ(pread(fd, bytes, sizeof bytes, 0), sizeof bytes);
    for (size_t i = from; i < from + len; i++)
        bytes[i] ^= 0x40;
    CHECK_EQ(pwrite(fd, bytes, sizeof bytes, 0), sizeof bytes);
    close(fd);
}

/* Where the copy of so many begins stands: the first two were written when the file was made. */
static size_t copy_at(uint32_t begins) {
    return (size_t)((begins + 1) % 2) * COPY_BYTES;
}

/* The newest copy was torn at any byte: the one before it counts, and the life after that goes on. */
static void test_torn_newest_copy(void) {
    for (size_t torn = 0; torn < 48; torn++) { /* what is behind the digest means nothing */
        char folder[PATH_MAX];
        folder_make(folder);
        for (int i = 0; i < 5; i++)
            begin(folder, true);
        damage(folder, copy_at(5) + torn, 48 - torn);
        CHECK_EQ(begin(folder, true).boots, 5);
        CHECK_EQ(begin(folder, true).boots, 6); /* the damaged copy has been written anew */
        damage(folder, copy_at(6) + torn, 1);
        CHECK_EQ(begin(folder, true).epoch, 6);
        folder_remove(folder);
    }
}

static void test_torn_older_copy(void) {
    char folder[PATH_MAX];
    folder_make(folder);
    for (int i = 0; i < 4; i++)
        begin(folder, true);
    damage(folder, copy_at(3), COPY_BYTES);
    CHECK_EQ(begin(folder, true).boots, 5);
    folder_remove(folder);
}

/* To start over as if nothing had been would give an epoch out twice. */
static void test_both_damaged(void) {
    char folder[PATH_MAX], path[PATH_MAX];
    struct store s;
    folder_make(folder);
    begin(folder, true);
    damage(folder, 20, 1);
    damage(folder, COPY_BYTES + 47, 1);
    CHECK_EQ(store_open(&s, folder), -EUCLEAN);
    CHECK_EQ(s.fd, -1);
    CHECK_EQ(truncate(folder_file(folder, "state", path), 0), 0);
    CHECK_EQ(store_open(&s, folder), -EUCLEAN);
    folder_remove(folder);
}

/* What a later form of the file means cannot be known, even if the other copy is of ours. */
static void test_newer(void) {
    char folder[PATH_MAX], path[PATH_MAX];
    struct store s;
    for (int copy = 0; copy < 2; copy++) {
        folder_make(folder);
        begin(folder, true);
        int fd = open(folder_file(folder, "state", path), O_WRONLY | O_CLOEXEC);
        CHECK_EQ(pwrite(fd, "2", 1, copy * COPY_BYTES + 6), 1);
        close(fd);
        CHECK_EQ(store_open(&s, folder), -ENOTSUP);
        CHECK_EQ(s.fd, -1);
        folder_remove(folder);
    }
}

static void test_short_file(void) {
    char folder[PATH_MAX], path[PATH_MAX];
    folder_make(folder);
    for (int i = 0; i < 3; i++)
        begin(folder, false);
    CHECK_EQ(copy_at(3), 0);
    CHECK_EQ(truncate(folder_file(folder, "state", path), COPY_BYTES + 10), 0);
    CHECK_EQ(begin(folder, false).boots, 4);
    folder_remove(folder);
}

/* A crash while it was being made leaves the other name behind, with anything in it. */
static void test_remains_of_a_creation(void) {
    char folder[PATH_MAX], path[PATH_MAX];
    folder_make(folder);
    int fd = open(folder_file(folder, "state.new", path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(write(fd, "rubbish", 7), 7);
    close(fd);
    CHECK_EQ(begin(folder, true).boots, 1);
    CHECK_EQ(begin(folder, true).boots, 2);
    folder_remove(folder);
}

/* ---- two at once ---- */

static void test_second_process_is_refused(void) {
    char folder[PATH_MAX];
    struct store s, other;
    folder_make(folder);
    CHECK_EQ(store_open(&s, folder), 0);
    CHECK_EQ(store_open(&other, folder), -EBUSY);
    CHECK_EQ(store_begin(&s, true), 0);
    store_close(&s);
    CHECK_EQ(begin(folder, true).epoch, 2);
    folder_remove(folder);
}

/* Many processes want to make it at the same time: one gets it, and nobody the same epoch. */
static void create_at_once(void) {
    enum { MANY = 8, ROUNDS = 4 };
    struct shared {
        int wins;
        uint32_t epochs[MANY * ROUNDS + 2];
    } *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char folder[PATH_MAX];
    CHECK(shared != MAP_FAILED);
    folder_make(folder);
    pid_t pids[MANY];
    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        for (int k = 0; pids[i] == 0 && k < ROUNDS;) {
            struct store s;
            int r = store_open(&s, folder);
            k += r == -EBUSY ? 0 : 1;
            if (r == 0 && store_begin(&s, true) == 0) {
                __atomic_add_fetch(&shared->wins, 1, __ATOMIC_SEQ_CST);
                if (s.kept.epoch <= MANY * ROUNDS)
                    __atomic_add_fetch(&shared->epochs[s.kept.epoch], 1, __ATOMIC_SEQ_CST);
            }
            store_close(&s);
        }
        if (pids[i] == 0)
            _exit(0);
    }
    for (int i = 0; i < MANY; i++)
        waitpid(pids[i], NULL, 0);
    CHECK_EQ(shared->wins, MANY * ROUNDS);
    for (uint32_t e = 1; e <= MANY * ROUNDS; e++)
        CHECK_EQ(shared->epochs[e], 1);
    munmap(shared, sizeof *shared);
    folder_remove(folder);
}

static void test_many_create_at_once(void) {
    for (int i = 0; i < 20; i++)
        create_at_once();
}

/* ---- while the loop runs ---- */

struct keeper {
    struct store store;
    struct loop loop;
    uint64_t safe[200];
    int count;
    uint64_t again; /* wanted from within the call */
};

static void on_durable(struct store *s, uint64_t value) {
    struct keeper *k = CONTAINER_OF(s, struct keeper, store);
    k->safe[k->count++ % 200] = value;
    if (k->again != 0) {
        uint64_t again = k->again;
        k->again = 0;
        store_keep(s, again);
    }
}

static void keeper_open(struct keeper *k, const char *folder) {
    *k = (struct keeper){0};
    CHECK_EQ(loop_init(&k->loop), 0);
    CHECK_EQ(store_open(&k->store, folder), 0);
    CHECK_EQ(store_begin(&k->store, false), 0);
    CHECK_EQ(store_attach(&k->store, &k->loop, on_durable), 0);
}

static void keeper_close(struct keeper *k) {
    store_close(&k->store);
    loop_fini(&k->loop);
}

/* What a process that starts now would find, whatever this one still has in mind. */
static uint64_t on_disk(const char *folder) {
    char path[PATH_MAX], copy_path[PATH_MAX], copy_folder[PATH_MAX];
    uint8_t bytes[2 * COPY_BYTES] = {0};
    struct store s;
    folder_make(copy_folder);
    int fd = open(folder_file(folder, "state", path), O_RDONLY | O_CLOEXEC);
    CHECK_EQ(read(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    fd = open(folder_file(copy_folder, "state", copy_path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK_EQ(write(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    uint64_t value = store_open(&s, copy_folder) == 0 ? s.kept.value : UINT64_MAX;
    store_close(&s);
    folder_remove(copy_folder);
    return value;
}

static void test_told_when_it_is_safe(void) {
    char folder[PATH_MAX];
    struct keeper k;
    folder_make(folder);
    keeper_open(&k, folder);
    for (uint64_t v = 10; v <= 30; v += 10) {
        store_keep(&k.store, v);
        CHECK_EQ(k.count, (int)v / 10 - 1); /* never from within */
        CHECK(TURN_UNTIL(&k.loop, , k.count == (int)v / 10));
        CHECK_EQ(k.safe[k.count - 1], v);
        CHECK_EQ(on_disk(folder), v);
    }
    store_keep(&k.store, 5); /* safe already: also told */
    CHECK(TURN_UNTIL(&k.loop, , k.count == 4));
    CHECK_EQ(k.safe[3], 30);
    CHECK_EQ(on_disk(folder), 30);
    keeper_close(&k);
    keeper_open(&k, folder);
    CHECK_EQ(k.store.kept.value, 30);
    CHECK_EQ(k.store.kept.boots, 2);
    keeper_close(&k);
    folder_remove(folder);
}

/* Many in a row: what is told ascends, never runs ahead of the disk, and ends with the highest. */
static void test_many_in_a_row(void) {
    char folder[PATH_MAX];
    struct keeper k;
    folder_make(folder);
    keeper_open(&k, folder);
    for (uint64_t v = 1; v <= 1000; v++)
        store_keep(&k.store, v);
    store_keep(&k.store, 400);
    CHECK(TURN_UNTIL(&k.loop, CHECK(k.count == 0 || on_disk(folder) >= k.safe[k.count - 1]),
                     k.count > 0 && k.safe[k.count - 1] == 1000));
    for (int i = 1; i < k.count; i++)
        CHECK(k.safe[i] > k.safe[i - 1]);
    CHECK(k.count <= 3); /* those that waited went together */
    k.again = 2000;
    store_keep(&k.store, 1500);
    CHECK(TURN_UNTIL(&k.loop, , k.safe[k.count - 1] == 2000));
    CHECK_EQ(on_disk(folder), 2000);
    keeper_close(&k);
    folder_remove(folder);
}

/* Closed in the middle of a write: it is waited for, and what was begun is there. */
static void test_closed_while_writing(void) {
    char folder[PATH_MAX];
    folder_make(folder);
    for (uint64_t v = 1; v <= 50; v++) {
        struct keeper k;
        keeper_open(&k, folder);
        store_keep(&k.store, v);
        keeper_close(&k);
        CHECK_EQ(k.count, 0);
        CHECK_EQ(on_disk(folder), v);
    }
    folder_remove(folder);
}

/* ---- a disk that takes nothing ---- */

static void refuse_writes(bool refuse) {
    struct rlimit r;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = refuse ? 0 : r.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void test_full_disk_at_start(void) {
    char folder[PATH_MAX];
    struct store s;
    folder_make(folder);
    refuse_writes(true);
    CHECK_EQ(store_open(&s, folder), -EFBIG);
    refuse_writes(false);
    CHECK_EQ(begin(folder, true).boots, 1);
    refuse_writes(true);
    CHECK_EQ(store_open(&s, folder), 0);
    CHECK_EQ(store_begin(&s, true), -EFBIG);
    CHECK_EQ(s.kept.boots, 1); /* it has not begun */
    store_close(&s);
    refuse_writes(false);
    CHECK_EQ(begin(folder, true).boots, 2);
    folder_remove(folder);
}

/* In the middle of a life: the process ends, and nobody has been told that the value is safe. */
static void test_full_disk_later(void) {
    char folder[PATH_MAX];
    folder_make(folder);
    pid_t pid = fork();
    if (pid == 0) {
        struct keeper k;
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        struct rlimit none = {0};
        dup2(null, STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &none);
        keeper_open(&k, folder);
        refuse_writes(true);
        store_keep(&k.store, 7);
        TURN_UNTIL(&k.loop, , k.count > 0);
        _exit(k.count);
    }
    int status = 0;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_EQ(on_disk(folder), 0);
    folder_remove(folder);
}

int main(void) {
    TEST(test_fresh);
    TEST(test_boots_and_epochs_count_up);
    TEST(test_raised);
    TEST(test_no_folder);
    TEST(test_torn_newest_copy);
    TEST(test_torn_older_copy);
    TEST(test_both_damaged);
    TEST(test_newer);
    TEST(test_short_file);
    TEST(test_remains_of_a_creation);
    TEST(test_second_process_is_refused);
    TEST(test_many_create_at_once);
    TEST(test_told_when_it_is_safe);
    TEST(test_many_in_a_row);
    TEST(test_closed_while_writing);
    TEST(test_full_disk_at_start);
    TEST(test_full_disk_later);
    return tap_finish();
}
