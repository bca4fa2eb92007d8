/* SPDX-License-Identifier: MIT */
/* Tests of what a depot has already: what need not be sent again, what may not be believed, what goes when. */
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/units.h"
#include "os/depot.h"
#include "os/shelf.h"
#include "yard.h"

static struct parcel *one_file(const char *name, struct bytes bytes, enum goal goal,
                               const char *to) {
    struct parcel *p = parcel_new(DIGEST_XXH3, 8192);
    parcel_file(p, name, 0755, bytes);
    parcel_wrap(p, goal, to, false);
    return p;
}

static struct parcel *for_cache(const char *name, struct bytes bytes) {
    return one_file(name, bytes, GOAL_SPOOL, "");
}

static void send_and_free(struct yard *y, struct parcel *p) {
    yard_send(y, p);
    parcel_free(p);
}

/* The path of the contents of an object, whatever its names are; relative to the yard. */
static void data_path(struct bytes bytes, const char *name, char out[512]) {
    uint8_t sum[32];
    char inside[SHELF_PATH_MAX];
    digest_of(DIGEST_SHA256, bytes, sum);
    shelf_path(sum, name, inside);
    snprintf(out, 512, "spool/objects/%s", inside);
}

/* Changes a byte of a file. */
static void spoil(const struct yard *y, const char *name, off_t at) {
    char path[512];
    uint8_t byte = 0;
    yard_path(y, name, path);
    CHECK_EQ(chmod(path, 0700), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static bool is_here(struct yard *y, struct bytes bytes) {
    char path[PATH_MAX];
    return yard_object(y, bytes, "name", path) == 0;
}

/* ---- objects ---- */

static void test_object(void) {
    struct yard y;
    char path[PATH_MAX], expected[512], data[512], whole[1024];
    struct stat a, b;
    struct bytes text = bytes_from_str("the contents of a program");
    yard_init(&y, MIB);
    CHECK_EQ(yard_object(&y, text, "prog", path), -ENOENT);
    send_and_free(&y, for_cache("bin/prog", text));
    data_path(text, "prog", data);
    snprintf(expected, sizeof expected, "%s", data + strlen("spool/"));
    snprintf(whole, sizeof whole, "%s/%s", y.spool, expected);
    CHECK(yard_has(&y, data, text));
    CHECK_EQ(stat(whole, &a), 0);
    CHECK_EQ(a.st_mode, S_IFREG | 0555);
    CHECK_EQ(yard_object(&y, text, "prog", path), 0);
    CHECK_STR(path, whole);
    CHECK_EQ(depot_bytes(y.d), text.len);
    CHECK_EQ(yard_object(&y, text, "other", path), 0); /* no second copy */
    CHECK_EQ(stat(path, &b), 0);
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK_EQ(depot_bytes(y.d), text.len);
    CHECK_EQ(yard_object(&y, text, "a/b", path), -EINVAL);
    CHECK_EQ(yard_object(&y, text, "..", path), -EINVAL);
    CHECK_EQ(yard_object(&y, text, ".table", path), -EINVAL);
    CHECK_EQ(yard_object(&y, text, "", path), -EINVAL);
    yard_restart(&y);
    CHECK_EQ(depot_bytes(y.d), text.len);
    CHECK_EQ(yard_object(&y, text, "prog", path), 0);
    CHECK_STR(path, whole);
    yard_fini(&y);
}

/* The same contents came as data first, then as a program; and as two files of one bundle. */
static void test_same_contents(void) {
    struct yard y;
    char path[PATH_MAX];
    struct stat s;
    struct bytes text = bytes_from_str("contents");
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    yard_init(&y, MIB);
    parcel_file(p, "data", 0600, text);
    parcel_file(p, "again", 0400, text);
    parcel_file(p, ".table", 0400, bytes_from_str("odd"));
    parcel_wrap(p, GOAL_SPOOL, "", false);
    yard_send(&y, p);
    CHECK_EQ(yard_object(&y, text, "data", path), 0);
    CHECK_EQ(stat(path, &s), 0);
    CHECK_EQ(s.st_mode, S_IFREG | 0400);
    CHECK_EQ(s.st_nlink, 3);
    CHECK_EQ(yard_object(&y, bytes_from_str("odd"), "odd", path), 0);
    send_and_free(&y, for_cache("prog", text));
    CHECK_EQ(yard_object(&y, text, "prog", path), 0);
    CHECK_EQ(stat(path, &s), 0);
    CHECK_EQ(s.st_mode, S_IFREG | 0555);
    send_and_free(&y, for_cache("odd", bytes_from_str("odd")));
    CHECK_EQ(yard_object(&y, bytes_from_str("odd"), "odd", path), 0);
    CHECK_EQ(stat(path, &s), 0);
    CHECK_EQ(s.st_mode, S_IFREG | 0555); /* it had that name, but could not be run */
    CHECK_EQ(depot_bytes(y.d), 8 + 3);
    parcel_free(p);
    yard_fini(&y);
}

/* No bundle has any contents of its own. */
static bool nothing_is_copied(const struct yard *y) {
    char path[512], name[512];
    struct stat s;
    bool none = true;
    DIR *dir = opendir(yard_path(y, "spool/partial", path));
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "spool/partial/%s", e->d_name);
        none = none && yard_count(y, name, "f") == 0;
        snprintf(name, sizeof name, "spool/partial/%s/head", e->d_name);
        none = none && stat(yard_path(y, name, path), &s) == 0 && s.st_size < 200;
    }
    closedir(dir);
    return none;
}

/* Of a file that is here only the manifest has to come, and nothing is copied. */
static void test_not_sent_again(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(500000, 20);
    struct parcel *p = for_cache("prog", bytes_of(noise, 500000)),
                  *q = for_cache("other", bytes_of(noise, 500000));
    char name[512];
    yard_init(&y, 10 * MIB);
    CHECK_EQ(yard_send(&y, p), p->pieces);
    struct depot_bundle *b = yard_open(&y, q);
    bool *have = yard_bools(q);
    CHECK_EQ(yard_pages(&y, b, q, have), q->pieces - 1); /* before anybody knows whose they are */
    CHECK(!have[0]);
    static uint8_t room[65536];
    CHECK_EQ(depot_load(b, 5, room_of(room, sizeof room), y.why), parcel_piece(q, 5).len);
    CHECK(bytes_equal(bytes_of(room, parcel_piece(q, 5).len), parcel_piece(q, 5)));
    CHECK(nothing_is_copied(&y));
    CHECK_EQ(yard_fill(&y, b, q, have, 0, q->pieces), 1);
    CHECK(nothing_is_copied(&y));
    CHECK_EQ(depot_load(b, 5, room_of(room, sizeof room), y.why), parcel_piece(q, 5).len);
    yard_commit(&y, b);
    CHECK_EQ(depot_load(b, 6, room_of(room, sizeof room), y.why), parcel_piece(q, 6).len);
    depot_close(b, true);
    CHECK_EQ(yard_send(&y, q), 1); /* and once more */
    CHECK_EQ(depot_bytes(y.d), 500000);
    data_path(bytes_of(noise, 500000), "other", name);
    CHECK(yard_has(&y, name, bytes_of(noise, 500000)));
    free(have);
    parcel_free(p);
    parcel_free(q);
    free(noise);
    yard_fini(&y);
}

/* Small files that share pieces: those that are here are known when the manifest is. */
static void test_packed_files_not_sent_again(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(200000, 21);
    struct parcel *p = parcel_new(DIGEST_XXH3, 8192);
    yard_init(&y, 10 * MIB);
    p->packed = true;
    for (uint32_t i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        parcel_file(p, name, 0644, bytes_of(noise + i * 2000, 2000));
    }
    parcel_wrap(p, GOAL_SPOOL, "", false);
    CHECK_EQ(yard_send(&y, p), p->pieces);
    CHECK_EQ(yard_send(&y, p), yard_manifest_pieces(p));
    p->b.goal = GOAL_PATH; /* copied from there */
    p->b.to = bytes_from_str("/to");
    parcel_describe(p);
    CHECK_EQ(yard_send(&y, p), yard_manifest_pieces(p));
    CHECK(yard_has(&y, "root/to/f77", bytes_of(noise + 77 * 2000, 2000)));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* A new version of a program: only what is new. */
static void test_pieces_of_other_objects(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(1000000, 22), *more = malloc(1000100);
    yard_init(&y, 10 * MIB);
    send_and_free(&y, for_cache("prog", bytes_of(noise, 1000000)));
    memcpy(more, noise, 300000);
    memset(more + 300000, 7, 100);
    memcpy(more + 300100, noise + 300000, 700000);
    struct parcel *p = for_cache("prog", bytes_of(more, 1000100));
    yard_restart(&y); /* as another life finds it */
    CHECK(yard_send(&y, p) < 10);
    CHECK(p->pieces > 100);
    char name[512];
    data_path(bytes_of(more, 1000100), "prog", name);
    CHECK(yard_has(&y, name, bytes_of(more, 1000100)));
    CHECK_EQ(depot_bytes(y.d), 2000100);
    parcel_free(p);
    free(noise);
    free(more);
    yard_fini(&y);
}

/* Without asking again after the manifest: what was found before is not lost by it. */
static void test_loans_become_a_file(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(300000, 23);
    struct parcel *p = one_file("copy", bytes_of(noise, 290000), GOAL_PATH, "/");
    yard_init(&y, 10 * MIB);
    send_and_free(&y, for_cache("prog", bytes_of(noise, 300000)));
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    CHECK(yard_pages(&y, b, p, have) >= p->pieces - 2);
    CHECK(yard_fill(&y, b, p, have, 0, p->pieces) <= 2);
    yard_commit(&y, b);
    depot_close(b, true);
    CHECK(yard_has(&y, "root/copy", bytes_of(noise, 290000)));
    free(have);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* ---- what was there before ---- */

/* Sends a changed file over one that is there; returns how many pieces were needed beside the manifest. */
static uint32_t send_over(const char *label, struct bytes before, struct bytes after, bool asks) {
    struct yard y;
    struct parcel *p = one_file("file", after, GOAL_PATH, "/");
    yard_init(&y, 10 * MIB);
    yard_put(&y, "root/file", before);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    uint32_t front = yard_manifest_pieces(p);
    yard_fill(&y, b, p, have, 0, front);
    if (asks)
        yard_pages(&y, b, p, have);
    uint32_t sent = yard_fill(&y, b, p, have, front, p->pieces);
    yard_commit(&y, b);
    depot_close(b, true);
    CHECK(yard_has(&y, "root/file", after));
    CHECK(yard_nothing_partial(&y));
    printf("# %s: %u of %u pieces\n", label, sent, p->pieces);
    free(have);
    parcel_free(p);
    yard_fini(&y);
    return sent;
}

static void test_replaced_file(void) {
    const size_t bytes = 2000000;
    uint8_t *noise = parcel_noise(bytes + 1000, 24), *other = parcel_noise(bytes, 25),
            *after = malloc(bytes + 1000);
    struct bytes before = bytes_of(noise, bytes);
    CHECK_EQ(send_over("the same", before, before, true), 0);
    CHECK(send_over("nobody asks", before, before, false) > 100);
    CHECK_EQ(send_over("shorter", before, bytes_of(noise, bytes / 2), true) <= 1, true);
    CHECK_EQ(send_over("longer", before, bytes_of(noise, bytes + 1000), true) <= 2, true);
    memcpy(after, noise, bytes);
    memset(after + 1000000, 1, 20);
    CHECK(send_over("changed inside", before, bytes_of(after, bytes), true) <= 3);
    memcpy(after + 500, noise, bytes);
    CHECK(send_over("moved", before, bytes_of(after, bytes + 500), true) <= 5);
    CHECK(send_over("begins later", before, bytes_of(noise + 777, bytes - 777), true) <= 5);
    CHECK(send_over("another", before, bytes_of(other, bytes), true) > 100);
    CHECK(send_over("was empty", bytes_of(noise, 0), before, true) > 100);
    free(noise);
    free(other);
    free(after);
}

/* ---- interrupted ---- */

/* Stores a part of it and is interrupted: by a close, or because the process ends. */
static void interrupt_send(struct yard *y, const struct parcel *p, const uint32_t *order,
                           uint32_t count, bool crash) {
    if (crash) {
        depot_free(y->d);
        y->d = NULL;
    }
    pid_t pid = crash ? fork() : 0;
    if (pid == 0) {
        if (crash)
            yard_start(y);
        struct depot_bundle *b = yard_open(y, p);
        bool *have = yard_bools(p);
        yard_pages(y, b, p, have);
        for (uint32_t i = 0; i < count; i++)
            CHECK_EQ(depot_store(b, order[i], parcel_piece(p, order[i]), y->why), 0);
        if (crash)
            _exit(tap_current_fail);
        free(have);
        depot_close(b, true);
        return;
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    yard_start(y);
}

static struct parcel *two_files(const uint8_t *noise, enum goal goal, const char *to) {
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    p->packed = true;
    parcel_file(p, "one", 0600, bytes_of(noise, 50000));
    parcel_file(p, "two", 0600, bytes_of(noise + 50000, 70000));
    parcel_wrap(p, goal, to, false);
    return p;
}

static void check_resumed(bool crash, bool manifest) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 26);
    struct parcel *p = two_files(noise, GOAL_PATH, "/to");
    uint32_t order[64], count = 0;
    yard_init(&y, MIB);
    for (uint32_t i = manifest ? 0 : 1; i < p->pieces; i++)
        if (i == 0 || i % 3 != 0)
            order[count++] = i;
    interrupt_send(&y, p, order, count, crash);
    CHECK_EQ(yard_count(&y, "spool/partial", ""), 1);
    CHECK(depot_bytes(y.d) > 60000);
    CHECK_EQ(yard_count(&y, "root", ""), 0);
    CHECK_EQ(yard_send(&y, p), p->pieces - count);
    CHECK(yard_has(&y, "root/to/one", bytes_of(noise, 50000)));
    CHECK(yard_has(&y, "root/to/two", bytes_of(noise + 50000, 70000)));
    CHECK(yard_nothing_partial(&y));
    CHECK_EQ(depot_bytes(y.d), 0);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

static void test_resumed(void) {
    check_resumed(false, true);
    check_resumed(false, false);
    check_resumed(true, true);
    check_resumed(true, false);
}

/* What lies in the partial files was changed: it has to come again. */
static void test_resumed_with_damage(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 27);
    struct parcel *p = two_files(noise, GOAL_PATH, "/to");
    uint32_t order[64];
    char name[512];
    yard_init(&y, MIB);
    for (uint32_t i = 0; i < p->pieces; i++)
        order[i] = i;
    interrupt_send(&y, p, order, p->pieces - 1, true);
    DIR *dir = opendir(yard_path(&y, "spool/partial", name));
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(name, sizeof name, "spool/partial/%s/f0", e->d_name);
            spoil(&y, name, 10000);
            spoil(&y, name, 30000);
        }
    closedir(dir);
    CHECK_EQ(yard_send(&y, p), 3);
    CHECK(yard_has(&y, "root/to/one", bytes_of(noise, 50000)));
    CHECK(yard_has(&y, "root/to/two", bytes_of(noise + 50000, 70000)));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* A file is taken away while it comes: it must not come out with a hole. */
static void test_partial_file_vanishes(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(400000, 39);
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    char name[512], path[512];
    int r = 0;
    yard_init(&y, MIB);
    for (uint32_t i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "f%u", i);
        parcel_file(p, name, 0600, bytes_of(noise + i * 20000, 20000));
    }
    parcel_wrap(p, GOAL_PATH, "/", false);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    uint32_t first = yard_manifest_pieces(p);
    yard_fill(&y, b, p, have, 0, first + 1);
    DIR *dir = opendir(yard_path(&y, "spool/partial", path));
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        snprintf(name, sizeof name, "spool/partial/%s/f0", e->d_name);
        unlink(yard_path(&y, name, path));
    }
    closedir(dir);
    yard_fill(&y, b, p, have, p->pieces - 50, p->pieces); /* others are open now */
    for (uint32_t i = first + 1; i < p->pieces - 50 && r == 0; i++)
        r = depot_store(b, i, parcel_piece(p, i), y.why);
    CHECK_EQ(r, -ENOENT);
    CHECK(strstr(y.why, "/f0") != NULL);
    depot_close(b, false);
    free(have);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
}

/* The head is damaged: the manifest has to come again, then the rest is there. */
static void test_resumed_without_manifest(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 28);
    struct parcel *p = two_files(noise, GOAL_PATH, "/to");
    uint32_t order[64];
    char name[512];
    yard_init(&y, MIB);
    for (uint32_t i = 0; i < p->pieces; i++)
        order[i] = i;
    interrupt_send(&y, p, order, p->pieces - 1, false);
    DIR *dir = opendir(yard_path(&y, "spool/partial", name));
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(name, sizeof name, "spool/partial/%s/head", e->d_name);
            spoil(&y, name, 10);
        }
    closedir(dir);
    CHECK_EQ(yard_send(&y, p), 2);
    CHECK(yard_has(&y, "root/to/two", bytes_of(noise + 50000, 70000)));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* The end came while names were given: what has its name already is taken from there. */
static void test_interrupted_commit(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 38);
    struct parcel *p = two_files(noise, GOAL_PATH, "/to");
    uint32_t order[64];
    char name[512], from[512], to[512];
    yard_init(&y, MIB);
    for (uint32_t i = 0; i < p->pieces; i++)
        order[i] = i;
    interrupt_send(&y, p, order, p->pieces, true);
    CHECK_EQ(mkdir(yard_path(&y, "root/to", to), 0755), 0);
    DIR *dir = opendir(yard_path(&y, "spool/partial", from));
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(name, sizeof name, "spool/partial/%s/f0", e->d_name);
            CHECK_EQ(rename(yard_path(&y, name, from), yard_path(&y, "root/to/one", to)), 0);
        }
    closedir(dir);
    CHECK_EQ(yard_send(&y, p), 1); /* the piece that both files have a part of */
    CHECK(yard_has(&y, "root/to/one", bytes_of(noise, 50000)));
    CHECK(yard_has(&y, "root/to/two", bytes_of(noise + 50000, 70000)));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* What an interrupted transfer has left serves another one with the same contents. */
static void test_partial_files_serve_others(void) {
    for (int crash = 0; crash < 2; crash++) {
        struct yard y;
        uint8_t *noise = parcel_noise(120000, 29);
        struct parcel *p = two_files(noise, GOAL_PATH, "/to"),
                      *q = two_files(noise, GOAL_PATH, "/elsewhere");
        uint32_t order[64];
        yard_init(&y, MIB);
        for (uint32_t i = 0; i < p->pieces; i++)
            order[i] = i;
        interrupt_send(&y, p, order, p->pieces - 5, crash);
        CHECK_EQ(yard_send(&y, q), 5);
        CHECK(yard_has(&y, "root/elsewhere/one", bytes_of(noise, 50000)));
        CHECK(yard_has(&y, "root/elsewhere/two", bytes_of(noise + 50000, 70000)));
        CHECK_EQ(yard_send(&y, p), 5); /* it was only read */
        CHECK(yard_has(&y, "root/to/two", bytes_of(noise + 50000, 70000)));
        parcel_free(p);
        parcel_free(q);
        free(noise);
        yard_fini(&y);
    }
}

static void test_partial_files_grow_old(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 30);
    struct parcel *p = two_files(noise, GOAL_PATH, "/to"),
                  *q = one_file("x", bytes_from_str("x"), GOAL_PATH, "/");
    uint32_t order[] = {0, 1, 2, 3};
    yard_init(&y, MIB);
    depot_free(y.d);
    y.config.partial_ns = 200 * NS_PER_MS;
    yard_start(&y);
    interrupt_send(&y, p, order, 4, false);
    CHECK_EQ(yard_count(&y, "spool/partial", ""), 1);
    usleep(250000);
    yard_send(&y, q);
    CHECK(yard_nothing_partial(&y));
    CHECK_EQ(depot_bytes(y.d), 0);
    interrupt_send(&y, p, order, 4, true);
    CHECK_EQ(yard_count(&y, "spool/partial", ""), 1);
    usleep(250000);
    yard_restart(&y);
    CHECK(yard_nothing_partial(&y));
    parcel_free(p);
    parcel_free(q);
    free(noise);
    yard_fini(&y);
}

/* Given up for good: nothing stays. */
static void test_not_kept(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 31);
    struct parcel *p = two_files(noise, GOAL_PATH, "/to");
    yard_init(&y, MIB);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    yard_fill(&y, b, p, have, 0, 10);
    depot_close(b, false);
    CHECK(yard_nothing_partial(&y));
    depot_close(yard_open(&y, p), true); /* nothing has come */
    CHECK(yard_nothing_partial(&y));
    free(have);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* ---- several at once ---- */

/* An earlier try is closed, and kept, only after the next has been opened: when that is whole, both are over. */
static void test_late_twin(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 33);
    struct parcel *p = two_files(noise, GOAL_PATH, "/to");
    yard_init(&y, MIB);
    struct depot_bundle *a = yard_open(&y, p), *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, a, p, have);
    for (uint32_t i = 0; i < p->pieces / 2; i++)
        CHECK_EQ(depot_store(a, i, parcel_piece(p, i), y.why), 0);
    depot_close(a, true);
    CHECK(depot_bytes(y.d) > 0);
    yard_pages(&y, b, p, have);
    for (uint32_t i = 0; i < p->pieces; i++)
        CHECK_EQ(depot_store(b, i, parcel_piece(p, i), y.why), 0);
    yard_commit(&y, b);
    depot_close(b, true);
    CHECK_EQ(depot_bytes(y.d), 0);
    CHECK(yard_nothing_partial(&y));
    free(have);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

static void test_twins(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 32);
    struct parcel *p = two_files(noise, GOAL_SPOOL, ""), *q = two_files(noise, GOAL_PATH, "/to");
    yard_init(&y, MIB);
    struct depot_bundle *a = yard_open(&y, p), *b = yard_open(&y, p), *c = yard_open(&y, q);
    bool *have = yard_bools(p);
    yard_pages(&y, a, p, have);
    yard_pages(&y, b, p, have);
    yard_pages(&y, c, q, have);
    for (uint32_t i = 0; i < p->pieces; i++) {
        CHECK_EQ(depot_store(a, i, parcel_piece(p, i), y.why), 0);
        CHECK_EQ(depot_store(b, i, parcel_piece(p, i), y.why), 0);
        CHECK_EQ(depot_store(c, i, parcel_piece(q, i), y.why), 0);
    }
    yard_commit(&y, b);
    yard_commit(&y, a);
    yard_commit(&y, c);
    depot_close(b, true);
    static uint8_t room[65536];
    CHECK_EQ(depot_load(a, 3, room_of(room, sizeof room), y.why), parcel_piece(p, 3).len);
    depot_close(a, true);
    depot_close(c, true);
    CHECK(is_here(&y, bytes_of(noise, 50000)));
    CHECK(is_here(&y, bytes_of(noise + 50000, 70000)));
    CHECK(yard_has(&y, "root/to/one", bytes_of(noise, 50000)));
    CHECK_EQ(depot_bytes(y.d), 120000);
    CHECK(yard_nothing_partial(&y));
    free(have);
    parcel_free(p);
    parcel_free(q);
    free(noise);
    yard_fini(&y);
}

static void test_spool_is_in_use(void) {
    struct yard y;
    struct depot *d = NULL;
    char why[256] = "";
    yard_init(&y, MIB);
    CHECK_EQ(depot_new(&y.config, &d, why), -EBUSY);
    CHECK(strstr(why, y.spool) != NULL);
    yard_fini(&y);
}

/* ---- damage ---- */

/* Writes down that the object is as it came, though it is not. */
static void lie(const struct yard *y, struct bytes bytes) {
    char name[512], path[512];
    uint8_t head[96];
    struct stat s;
    struct hash h;
    data_path(bytes, ".data", name);
    CHECK_EQ(stat(yard_path(y, name, path), &s), 0);
    data_path(bytes, ".table", name);
    int fd = open(yard_path(y, name, path), O_RDWR | O_CLOEXEC);
    CHECK_EQ(files_read_all(fd, room_of(head, sizeof head), 0), 0);
    store_le64(head + 24, files_mtime_ns(&s));
    store_le64(head + 32, files_ctime_ns(&s));
    hash_init(&h, load_le64(head));
    hash_bytes(&h, head, 88);
    store_le64(head + 88, hash_done(&h));
    CHECK_EQ(files_write(fd, bytes_of(head, sizeof head), 0), 0);
    close(fd);
}

static void test_damaged_object(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(300000, 33);
    struct bytes bytes = bytes_of(noise, 300000);
    struct parcel *p = for_cache("prog", bytes);
    char name[512];
    yard_init(&y, 10 * MIB);
    data_path(bytes, ".data", name);
    yard_send(&y, p);
    spoil(&y, name, 200000);
    CHECK(!is_here(&y, bytes)); /* it is noticed, and gone */
    CHECK(!yard_is_there(&y, name));
    CHECK_EQ(depot_bytes(y.d), 0);
    CHECK_EQ(yard_send(&y, p), p->pieces);
    CHECK(is_here(&y, bytes));
    spoil(&y, name, 200000);
    spoil(&y, name, 200000); /* as it was: only its times are others */
    CHECK(is_here(&y, bytes));
    spoil(&y, name, 100);
    CHECK_EQ(yard_send(&y, p), p->pieces); /* the pieces of a damaged one are not used either */
    CHECK(is_here(&y, bytes));
    spoil(&y, name, 299999);
    yard_restart(&y);
    CHECK(!is_here(&y, bytes));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* Even if it looks as it did: every piece is read, and its digest counts. */
static void test_damage_that_does_not_show(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(300000, 34);
    struct bytes bytes = bytes_of(noise, 300000);
    struct parcel *p = one_file("copy", bytes, GOAL_PATH, "/");
    char name[512];
    yard_init(&y, 10 * MIB);
    data_path(bytes, ".data", name);
    send_and_free(&y, for_cache("prog", bytes));
    spoil(&y, name, 100000);
    lie(&y, bytes);
    yard_restart(&y);
    CHECK(is_here(&y, bytes)); /* nobody can tell */
    struct depot_bundle *b = yard_open(&y, p);
    CHECK(yard_take(&y, b, p) > 1);
    yard_commit(&y, b);
    depot_close(b, true);
    CHECK(yard_has(&y, "root/copy", bytes));
    CHECK(!is_here(&y, bytes));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* The digest of the whole is a lie: that is believed only where nobody is mistrusted. */
static void test_false_digest(void) {
    for (int i = 0; i < 2; i++) {
        struct yard y;
        struct parcel *p = parcel_new(i == 0 ? DIGEST_SHA256 : DIGEST_XXH3, 4096);
        struct bytes evil = bytes_from_str("something evil"), good = bytes_from_str("good");
        yard_init(&y, MIB);
        struct entry e = parcel_plain(ENTRY_FILE, "prog", 0755);
        e.bytes = evil.len;
        digest_of(DIGEST_SHA256, good, e.sum);
        parcel_file(p, "prog", 0755, evil);
        p->manifest_bytes = 0;
        parcel_entry(p, e);
        parcel_wrap(p, GOAL_SPOOL, "", false);
        struct depot_bundle *b = yard_open(&y, p);
        yard_take(&y, b, p);
        CHECK_EQ(depot_commit(b, y.why), i == 0 ? -EINVAL : 0);
        depot_close(b, false);
        CHECK_EQ(is_here(&y, good), i == 1);
        CHECK(yard_nothing_partial(&y));
        parcel_free(p);
        yard_fini(&y);
    }
}

/* ---- what a life finds ---- */

static void test_half_made(void) {
    struct yard y;
    char path[512], name[512];
    struct bytes text = bytes_from_str("contents"), other = bytes_from_str("other");
    yard_init(&y, MIB);
    send_and_free(&y, for_cache("prog", text));
    send_and_free(&y, for_cache("prog", other));
    depot_free(y.d);
    data_path(text, ".table", name);
    CHECK_EQ(truncate(yard_path(&y, name, path), 50), 0);
    static const char *const junk[] = {"spool/partial/object", "spool/partial/gone"};
    for (size_t i = 0; i < 2; i++)
        CHECK_EQ(mkdir(yard_path(&y, junk[i], path), 0700), 0);
    yard_put(&y, "spool/partial/gone/file", text);
    yard_put(&y, "spool/partial/stray", text);
    yard_start(&y);
    CHECK(yard_nothing_partial(&y));
    CHECK(!is_here(&y, text));
    data_path(text, "", name);
    CHECK(!yard_is_there(&y, name));
    CHECK(is_here(&y, other));
    CHECK_EQ(depot_bytes(y.d), other.len);
    yard_fini(&y);
}

/* ---- what goes ---- */

static struct bytes lump(const uint8_t *noise, uint32_t i) {
    return bytes_of(noise + (size_t)i * 10000, 10000);
}

static void put_lump(struct yard *y, const uint8_t *noise, uint32_t i) {
    send_and_free(y, for_cache("lump", lump(noise, i)));
}

/* Which lumps are here, without using them. */
static void lumps_here(const struct yard *y, const uint8_t *noise, char out[16]) {
    size_t n = 0;
    for (uint32_t i = 0; i < 8; i++) {
        char name[512];
        data_path(lump(noise, i), ".data", name);
        if (yard_is_there(y, name))
            out[n++] = (char)('0' + i);
    }
    out[n] = '\0';
}

static void test_least_recently_used_goes(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(100000, 35), sum[32];
    char here[16], path[PATH_MAX];
    yard_init(&y, 35000);
    for (uint32_t i = 0; i < 3; i++)
        put_lump(&y, noise, i);
    CHECK_EQ(yard_object(&y, lump(noise, 0), "lump", path), 0);
    put_lump(&y, noise, 3);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "023");
    CHECK_EQ(yard_object(&y, lump(noise, 2), "lump", path), 0);
    yard_restart(&y); /* the order is known afterwards */
    put_lump(&y, noise, 4);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "234");
    put_lump(&y, noise, 5);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "245");
    digest_of(DIGEST_SHA256, lump(noise, 4), sum);
    depot_pin(y.d, sum);
    put_lump(&y, noise, 6);
    put_lump(&y, noise, 7);
    put_lump(&y, noise, 0);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "047");
    CHECK_EQ(depot_bytes(y.d), 30000);
    depot_unpin(y.d, sum);
    put_lump(&y, noise, 1);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "017");
    free(noise);
    yard_fini(&y);
}

/* What is in use stays, though it is too much. */
static void test_in_use_stays(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(100000, 36), sum[32], other[32], third[32];
    char here[16];
    struct parcel *p = for_cache("lump", lump(noise, 2));
    yard_init(&y, 15000);
    digest_of(DIGEST_SHA256, lump(noise, 0), sum);
    digest_of(DIGEST_SHA256, lump(noise, 1), other);
    digest_of(DIGEST_SHA256, lump(noise, 2), third);
    put_lump(&y, noise, 0);
    depot_pin(y.d, sum);
    put_lump(&y, noise, 1);
    depot_pin(y.d, other);
    CHECK_EQ(depot_bytes(y.d), 20000);
    struct depot_bundle *b = yard_open(&y, p);
    yard_take(&y, b, p);
    yard_commit(&y, b);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "012"); /* the bundle is not closed */
    depot_close(b, true);
    CHECK(is_here(&y, lump(noise, 2))); /* nor is there a reason before something is asked for */
    depot_pin(y.d, third);
    b = yard_open(&y, p); /* it relies on what is here */
    CHECK_EQ(yard_take(&y, b, p), 1);
    depot_unpin(y.d, third);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "012");
    yard_commit(&y, b);
    depot_close(b, true);
    CHECK(is_here(&y, lump(noise, 2)));
    depot_unpin(y.d, sum);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "1");
    depot_unpin(y.d, other);
    depot_unpin(y.d, other); /* once too often is no harm */
    CHECK(is_here(&y, lump(noise, 1)));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* Partial files are in the cache like others. */
static void test_partial_files_go_too(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(120000, 37);
    struct parcel *p = two_files(noise, GOAL_PATH, "/to");
    uint32_t order[64];
    char here[16];
    yard_init(&y, 65000);
    for (uint32_t i = 0; i < p->pieces; i++)
        order[i] = i;
    put_lump(&y, noise, 0);
    put_lump(&y, noise, 1);
    interrupt_send(&y, p, order, 13, false); /* some 50000 bytes */
    CHECK(depot_bytes(y.d) <= 65000);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "1");
    for (uint32_t i = 2; i < 7; i++)
        put_lump(&y, noise, i);
    lumps_here(&y, noise, here);
    CHECK_STR(here, "23456");
    CHECK(yard_nothing_partial(&y));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* ---- memory ---- */

static size_t heap_bytes(void) {
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* A file of a million pieces, nearly all of them holes: its table is not in our memory. */
static void test_memory_is_bounded(void) {
    enum { PIECES = 1000000, HOLE = 4096, ROW = 4 + 16 };
    struct yard y;
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    yard_init(&y, MIB);
    struct entry e = parcel_plain(ENTRY_FILE, "long", 0600);
    e.bytes = (PIECES - 1ULL) * HOLE;
    parcel_entry(p, e);
    p->stream = malloc(p->manifest_bytes);
    memcpy(p->stream, p->manifest, p->manifest_bytes);
    p->rows = malloc((size_t)PIECES * ROW);
    p->starts = calloc(PIECES + 1, sizeof *p->starts);
    parcel_row(p, (uint32_t)p->manifest_bytes, false);
    while (p->pieces < PIECES)
        parcel_row(p, HOLE, true);
    p->b.page_pieces = 1024;
    p->b.pieces = PIECES;
    p->b.bytes = p->manifest_bytes + e.bytes;
    p->b.manifest_bytes = (uint32_t)p->manifest_bytes;
    p->b.to = bytes_from_str("/");
    uint32_t pages = bundle_page_count(&p->b);
    for (uint32_t i = 0; i < pages; i++)
        digest_of(DIGEST_XXH3, parcel_page(p, i), p->pages + (size_t)i * 16);
    p->b.pages = bytes_of(p->pages, (size_t)pages * 16);
    parcel_describe(p);
    bool *have = yard_bools(p);
    size_t before = heap_bytes();
    struct depot_bundle *b = yard_open(&y, p);
    yard_pages(&y, b, p, have);
    CHECK(!have[0]);
    CHECK_EQ(yard_fill(&y, b, p, have, 0, PIECES), 1);
    size_t after = heap_bytes();
    printf("# %zu bytes for a bundle of %u pieces\n", after - before, PIECES);
    CHECK(after - before < MIB);
    yard_commit(&y, b);
    depot_close(b, false);
    char path[512];
    struct stat s;
    CHECK_EQ(stat(yard_path(&y, "root/long", path), &s), 0);
    CHECK_EQ(s.st_size, e.bytes);
    free(have);
    parcel_free(p);
    yard_fini(&y);
}

int main(void) {
    TEST(test_object);
    TEST(test_same_contents);
    TEST(test_not_sent_again);
    TEST(test_packed_files_not_sent_again);
    TEST(test_pieces_of_other_objects);
    TEST(test_loans_become_a_file);
    TEST(test_replaced_file);
    TEST(test_resumed);
    TEST(test_resumed_with_damage);
    TEST(test_partial_file_vanishes);
    TEST(test_resumed_without_manifest);
    TEST(test_interrupted_commit);
    TEST(test_partial_files_serve_others);
    TEST(test_partial_files_grow_old);
    TEST(test_not_kept);
    TEST(test_twins);
    TEST(test_late_twin);
    TEST(test_spool_is_in_use);
    TEST(test_damaged_object);
    TEST(test_damage_that_does_not_show);
    TEST(test_false_digest);
    TEST(test_half_made);
    TEST(test_least_recently_used_goes);
    TEST(test_in_use_stays);
    TEST(test_partial_files_go_too);
    TEST(test_memory_is_bounded);
    return tap_finish();
}
