/* SPDX-License-Identifier: MIT */
/* Tests of the depot: what is sent arrives, where it shall and nowhere else, whole or not at all. */
#include "os/depot.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/units.h"
#include "yard.h"

static const struct bytes nothing = {0};

/* What a file is like. */
static struct stat stat_of(const struct yard *y, const char *name) {
    char path[512];
    struct stat s = {0};
    CHECK_EQ(lstat(yard_path(y, name, path), &s), 0);
    return s;
}

static void shuffle(uint32_t *order, uint32_t count, uint64_t seed) {
    struct random r;
    random_init(&r, seed);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)(random_u64(&r) % i), t = order[j];
        order[j] = order[i - 1];
        order[i - 1] = t;
    }
}

/* Without waiting for anything, in this order. */
static void send_in_order(struct yard *y, const struct parcel *p, const uint32_t *order) {
    struct depot_bundle *b = yard_open(y, p);
    bool *have = yard_bools(p);
    yard_pages(y, b, p, have);
    for (uint32_t i = 0; i < p->pieces; i++)
        if (!have[order[i]])
            CHECK_EQ(depot_store(b, order[i], parcel_piece(p, order[i]), y->why), 0);
    yard_commit(y, b);
    depot_close(b, false);
    free(have);
}

/* ---- files to paths ---- */

static void test_one_file(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(1000000, 1);
    struct parcel *p = parcel_new(DIGEST_XXH3, 16384);
    yard_init(&y, MIB);
    parcel_file(p, "file", 0640, bytes_of(noise, 1000000));
    parcel_wrap(p, GOAL_PATH, "/a/b", false);
    CHECK_EQ(yard_send(&y, p), p->pieces);
    CHECK(yard_has(&y, "root/a/b/file", bytes_of(noise, 1000000)));
    struct stat s = stat_of(&y, "root/a/b/file");
    CHECK_EQ(s.st_mode, S_IFREG | 0640);
    CHECK_EQ(files_mtime_ns(&s), 1000000007123456789);
    CHECK(yard_nothing_partial(&y));
    CHECK_EQ(depot_bytes(y.d), 0);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* Nothing has its name before everything is there; what was there before stays until then. */
static void test_nothing_early(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(100000, 2);
    struct parcel *p = parcel_new(DIGEST_XXH3, 8192);
    yard_init(&y, MIB);
    yard_put(&y, "root/old", bytes_from_str("as it was"));
    parcel_file(p, "old", 0600, bytes_of(noise, 50000));
    parcel_file(p, "new", 0600, bytes_of(noise + 50000, 50000));
    parcel_wrap(p, GOAL_PATH, "/", false);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    yard_fill(&y, b, p, have, 0, p->pieces - 1);
    CHECK_EQ(depot_commit(b, y.why), -ENODATA);
    CHECK_EQ(yard_count(&y, "root", ""), 1);
    yard_fill(&y, b, p, have, p->pieces - 1, p->pieces);
    CHECK_EQ(yard_count(&y, "root", ""), 1);
    CHECK(yard_has(&y, "root/old", bytes_from_str("as it was")));
    yard_commit(&y, b);
    yard_commit(&y, b); /* again is no harm */
    CHECK(yard_has(&y, "root/old", bytes_of(noise, 50000)));
    CHECK(yard_has(&y, "root/new", bytes_of(noise + 50000, 50000)));
    depot_close(b, true);
    CHECK(yard_nothing_partial(&y));
    free(have);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
}

static struct parcel *tree(const uint8_t *noise, bool packed, bool joined) {
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    p->packed = packed;
    p->joined = joined;
    parcel_folder(p, "top", 0750);
    parcel_file(p, "top/empty", 0444, nothing);
    parcel_file(p, "top/first", 0600, bytes_of(noise, 30000));
    parcel_folder(p, "top/shut", 0555);
    parcel_file(p, "top/shut/small", 04711, bytes_of(noise + 30000, 7));
    parcel_file(p, "top/shut/empty", 0600, nothing);
    parcel_link(p, "top/link", "../../anywhere");
    parcel_folder(p, "top/shut/inner", 0700);
    parcel_file(p, "top/shut/inner/third", 0600, bytes_of(noise + 30007, 20000));
    parcel_file(p, "top/last", 0600, nothing);
    parcel_wrap(p, GOAL_PATH, "/to", false);
    return p;
}

static void check_tree(const struct yard *y, const uint8_t *noise) {
    char path[512], target[64] = "";
    CHECK(yard_has(y, "root/to/top/empty", nothing));
    CHECK(yard_has(y, "root/to/top/first", bytes_of(noise, 30000)));
    CHECK(yard_has(y, "root/to/top/shut/small", bytes_of(noise + 30000, 7)));
    CHECK(yard_has(y, "root/to/top/shut/empty", nothing));
    CHECK(yard_has(y, "root/to/top/shut/inner/third", bytes_of(noise + 30007, 20000)));
    CHECK(yard_has(y, "root/to/top/last", nothing));
    CHECK_EQ(stat_of(y, "root/to/top").st_mode, S_IFDIR | 0750);
    CHECK_EQ(stat_of(y, "root/to/top/shut").st_mode, S_IFDIR | 0555);
    CHECK_EQ(stat_of(y, "root/to/top/shut/inner").st_mode, S_IFDIR | 0700);
    CHECK_EQ(stat_of(y, "root/to/top/shut/small").st_mode, S_IFREG | 04711);
    CHECK_EQ(stat_of(y, "root/to/top/empty").st_mode, S_IFREG | 0444);
    static const char *const all[] = {"top", "top/empty", "top/shut", "top/shut/inner", "top/link"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        snprintf(path, sizeof path, "root/to/%s", all[i]);
        struct stat s = stat_of(y, path);
        CHECK_EQ(files_mtime_ns(&s), 1000000007123456789);
    }
    CHECK_EQ(readlink(yard_path(y, "root/to/top/link", path), target, sizeof target - 1), 14);
    CHECK_STR(target, "../../anywhere");
    CHECK_EQ(yard_count(y, "root/to/top", "."), 0);
    chmod(yard_path(y, "root/to/top/shut", path), 0700); /* or it cannot be removed */
}

/* Pieces come in any order, also before the manifest, and may be of several files. */
static void test_tree_in_any_order(void) {
    uint8_t *noise = parcel_noise(100000, 3);
    for (uint32_t i = 0; i < 12; i++) {
        struct yard y;
        uint32_t order[64];
        struct parcel *p = tree(noise, i & 1, i % 3 == 2);
        yard_init(&y, MIB);
        ASSERT(p->pieces <= 64);
        shuffle(order, p->pieces, i);
        for (uint32_t k = 0; k < p->pieces && i < 2; k++)
            order[k] = p->pieces - 1 - k;
        send_in_order(&y, p, order);
        check_tree(&y, noise);
        CHECK(yard_nothing_partial(&y));
        parcel_free(p);
        yard_fini(&y);
    }
    free(noise);
}

/* A folder is merged into one that is there, which stays as it is otherwise. */
static void test_merged(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(100000, 3);
    struct parcel *p = tree(noise, true, false);
    char path[512];
    yard_init(&y, MIB);
    CHECK_EQ(mkdir(yard_path(&y, "root/to", path), 0700), 0);
    CHECK_EQ(mkdir(yard_path(&y, "root/to/top", path), 0711), 0);
    yard_put(&y, "root/to/top/other", bytes_from_str("stays"));
    yard_put(&y, "root/to/top/first", bytes_from_str("goes"));
    CHECK_EQ(symlink("nowhere", yard_path(&y, "root/to/top/last", path)), 0);
    yard_send(&y, p);
    CHECK(yard_has(&y, "root/to/top/other", bytes_from_str("stays")));
    CHECK(yard_has(&y, "root/to/top/first", bytes_of(noise, 30000)));
    CHECK(yard_has(&y, "root/to/top/last", nothing));
    CHECK_EQ(stat_of(&y, "root/to/top").st_mode, S_IFDIR | 0711);
    CHECK_EQ(stat_of(&y, "root/to/top/shut").st_mode, S_IFDIR | 0555);
    chmod(yard_path(&y, "root/to/top/shut", path), 0700);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

static void test_replace(void) {
    struct yard y;
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096), *q = parcel_new(DIGEST_XXH3, 4096),
                  *many = parcel_new(DIGEST_XXH3, 4096);
    yard_init(&y, MIB);
    parcel_file(p, "file", 0600, bytes_from_str("contents"));
    parcel_wrap(p, GOAL_PATH, "/some/name", true);
    yard_send(&y, p);
    CHECK(yard_has(&y, "root/some/name", bytes_from_str("contents")));
    parcel_folder(q, "folder", 0700);
    parcel_file(q, "folder/file", 0600, bytes_from_str("more"));
    parcel_wrap(q, GOAL_PATH, "/some/other", true);
    yard_send(&y, q);
    CHECK(yard_has(&y, "root/some/other/file", bytes_from_str("more")));
    CHECK_EQ(yard_count(&y, "root/some", ""), 2);
    parcel_file(many, "one", 0600, bytes_from_str("1"));
    parcel_file(many, "two", 0600, bytes_from_str("2"));
    parcel_wrap(many, GOAL_PATH, "/some/third", true);
    struct depot_bundle *b = yard_open(&y, many);
    bool have[16];
    yard_pages(&y, b, many, have);
    CHECK_EQ(depot_store(b, 0, parcel_piece(many, 0), y.why), -EINVAL);
    CHECK(strstr(y.why, "/some/third") != NULL);
    depot_close(b, true);
    CHECK_EQ(yard_count(&y, "root/some", ""), 2);
    parcel_free(p);
    parcel_free(q);
    parcel_free(many);
    yard_fini(&y);
}

/* Holes come as nothing and take no room: at the beginning, inside, at the end, or all of it. */
static void test_holes(void) {
    struct yard y;
    const size_t bytes = 64 * PARCEL_HOLE;
    uint8_t *data = calloc(1, bytes), *noise = parcel_noise(PARCEL_HOLE, 5);
    struct parcel *p = parcel_new(DIGEST_XXH3, 8192);
    yard_init(&y, MIB);
    memcpy(data + 8 * PARCEL_HOLE, noise, PARCEL_HOLE);
    memcpy(data + 40 * PARCEL_HOLE, noise, PARCEL_HOLE);
    p->sparse = true;
    parcel_file(p, "sparse", 0600, bytes_of(data, bytes));
    parcel_file(p, "hole", 0600, bytes_of(data, 8 * PARCEL_HOLE));
    parcel_file(p, "end", 0600, bytes_of(data + 8 * PARCEL_HOLE, 8 * PARCEL_HOLE));
    parcel_wrap(p, GOAL_PATH, "/", false);
    CHECK(yard_send(&y, p) < p->pieces);
    CHECK(yard_has(&y, "root/sparse", bytes_of(data, bytes)));
    CHECK(yard_has(&y, "root/hole", bytes_of(data, 8 * PARCEL_HOLE)));
    CHECK(yard_has(&y, "root/end", bytes_of(data + 8 * PARCEL_HOLE, 8 * PARCEL_HOLE)));
    CHECK(stat_of(&y, "root/sparse").st_blocks * 512 <= 5 * PARCEL_HOLE);
    CHECK_EQ(stat_of(&y, "root/hole").st_blocks, 0);
    CHECK(stat_of(&y, "root/end").st_blocks * 512 <= 3 * PARCEL_HOLE);
    parcel_free(p);
    free(data);
    free(noise);
    yard_fini(&y);
}

/* More files than are held open at once, one after the other and at random. */
static void test_many_files(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(400 * 1500, 6);
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    char name[64];
    yard_init(&y, MIB);
    p->packed = true;
    for (uint32_t i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "f%u", i);
        parcel_file(p, name, 0600, bytes_of(noise + i * 1500, 1500));
    }
    parcel_wrap(p, GOAL_PATH, "/many", false);
    uint32_t *order = calloc(p->pieces, sizeof *order);
    shuffle(order, p->pieces, 6);
    send_in_order(&y, p, order);
    bool right = true;
    for (uint32_t i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "root/many/f%u", i);
        right = right && yard_has(&y, name, bytes_of(noise + i * 1500, 1500));
    }
    CHECK(right);
    free(order);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
}

/* ---- what does not fit ---- */

static void test_wrong_bytes(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(400000, 7), bits[128];
    struct parcel *p = parcel_new(DIGEST_SHA256, 8192);
    struct depot_bundle *b = NULL;
    yard_init(&y, MIB);
    parcel_file(p, "file", 0600, bytes_of(noise, 400000));
    parcel_wrap(p, GOAL_PATH, "/", false);
    CHECK_EQ(depot_open(y.d, bytes_of(p->descriptor, p->descriptor_bytes - 1), &b, y.why),
             -EBADMSG);
    b = yard_open(&y, p);
    CHECK_EQ(depot_store(b, 0, parcel_piece(p, 0), y.why), -EBADMSG); /* no page */
    CHECK_EQ(depot_page(b, 1, parcel_page(p, 1), bits, y.why), -EAGAIN);
    CHECK_EQ(depot_page(b, 0, parcel_page(p, 1), bits, y.why), -EBADMSG);
    CHECK_EQ(depot_page(b, 9999, parcel_page(p, 1), bits, y.why), -EBADMSG);
    p->rows[40] ^= 1;
    CHECK_EQ(depot_page(b, 0, parcel_page(p, 0), bits, y.why), -EBADMSG);
    p->rows[40] ^= 1;
    CHECK_EQ(depot_table(b, 0).len, 0);
    CHECK_EQ(depot_page(b, 0, parcel_page(p, 0), bits, y.why), 0);
    CHECK(bytes_equal(depot_table(b, 0), parcel_page(p, 0)));
    CHECK_EQ(depot_store(b, 2, parcel_piece(p, 3), y.why), -EBADMSG);
    struct bytes piece = parcel_piece(p, 2);
    CHECK_EQ(depot_store(b, 2, bytes_of(piece.at, piece.len - 1), y.why), -EBADMSG);
    p->stream[p->starts[2] + 100] ^= 1;
    CHECK_EQ(depot_store(b, 2, piece, y.why), -EBADMSG);
    p->stream[p->starts[2] + 100] ^= 1;
    CHECK_EQ(depot_load(b, 2, room_of(noise, 8192), y.why), -ENOENT);
    CHECK_EQ(depot_store(b, p->pieces, piece, y.why), -EBADMSG);
    yard_take(&y, b, p); /* none of this does harm */
    yard_commit(&y, b);
    depot_close(b, false);
    CHECK(yard_has(&y, "root/file", bytes_of(p->contents, 400000)));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* Sends what comes before the manifest is judged; returns what is said of it. */
static int judge(struct yard *y, const struct parcel *p) {
    struct depot_bundle *b = yard_open(y, p);
    bool have[64] = {0};
    uint32_t front = yard_manifest_pieces(p);
    int r = 0;
    yard_pages(y, b, p, have);
    for (uint32_t i = 0; i < front && r == 0; i++)
        r = depot_store(b, i, parcel_piece(p, i), y->why);
    if (r < 0) { /* and it is said again */
        char why[256];
        CHECK_EQ(depot_store(b, p->pieces - 1, parcel_piece(p, p->pieces - 1), why), r);
        CHECK_STR(why, y->why);
        CHECK_EQ(depot_commit(b, why), r);
    }
    for (uint32_t i = front; i < p->pieces && r == 0; i++)
        r = depot_store(b, i, parcel_piece(p, i), y->why);
    if (r == 0)
        r = depot_commit(b, y->why);
    depot_close(b, false);
    CHECK(yard_nothing_partial(y));
    return r;
}

static struct parcel *small(const char *name, const char *to) {
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    parcel_file(p, name, 0600, bytes_from_str("contents"));
    parcel_wrap(p, GOAL_PATH, to, false);
    return p;
}

static void test_in_the_way(void) {
    struct yard y;
    char path[512];
    struct parcel *p = small("name", "/to"), *q = parcel_new(DIGEST_XXH3, 4096),
                  *deep = small("name/deep", "/to");
    yard_init(&y, MIB);
    CHECK_EQ(mkdir(yard_path(&y, "root/to", path), 0700), 0);
    CHECK_EQ(mkdir(yard_path(&y, "root/to/name", path), 0700), 0);
    CHECK_EQ(judge(&y, p), -EISDIR);
    CHECK_STR(y.why, "/to/name: a folder is in the way");
    CHECK_EQ(rmdir(path), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(judge(&y, p), -EEXIST);
    CHECK(strstr(y.why, "/to/name: ") != NULL);
    CHECK_EQ(unlink(path), 0);
    yard_put(&y, "root/to/name", bytes_from_str("stays"));
    parcel_folder(q, "name", 0700);
    parcel_wrap(q, GOAL_PATH, "/to", false);
    CHECK_EQ(judge(&y, deep), -ENOTDIR);
    CHECK(strstr(y.why, "/to/name/deep: ") != NULL);
    CHECK(yard_has(&y, "root/to/name", bytes_from_str("stays")));
    struct depot_bundle *b = yard_open(&y, q);
    bool have[4];
    yard_pages(&y, b, q, have);
    CHECK_EQ(depot_store(b, 0, parcel_piece(q, 0), y.why), -ENOTDIR);
    depot_close(b, false);
    parcel_free(p);
    parcel_free(q);
    parcel_free(deep);
    yard_fini(&y);
}

/* Somebody puts a link where the files go: they do not go where it leads. */
static void test_links_are_not_followed(void) {
    struct yard y;
    char path[512];
    struct parcel *through = small("name", "/link/to"), *at = small("target", "/"),
                  *both = parcel_new(DIGEST_XXH3, 4096), *up = small("../name", "/to");
    yard_init(&y, MIB);
    CHECK_EQ(mkdir(yard_path(&y, "outside", path), 0700), 0);
    CHECK_EQ(mkdir(yard_path(&y, "outside/to", path), 0700), 0);
    CHECK_EQ(symlink("../outside", yard_path(&y, "root/link", path)), 0);
    CHECK_EQ(judge(&y, through), -ELOOP);
    CHECK(strstr(y.why, "/link/to/name: ") != NULL);
    CHECK_EQ(yard_count(&y, "outside/to", ""), 0);
    yard_put(&y, "outside/file", bytes_from_str("stays"));
    CHECK_EQ(symlink("../outside/file", yard_path(&y, "root/target", path)), 0);
    CHECK_EQ(judge(&y, at), 0); /* the link itself is replaced */
    CHECK(yard_has(&y, "outside/file", bytes_from_str("stays")));
    CHECK(yard_has(&y, "root/target", bytes_from_str("contents")));
    parcel_link(both, "way", "../outside");
    parcel_file(both, "way/name", 0600, bytes_from_str("contents"));
    parcel_wrap(both, GOAL_PATH, "/", false);
    CHECK_EQ(judge(&y, both), -ELOOP);
    CHECK_EQ(judge(&y, up), -EINVAL);
    CHECK(strstr(y.why, "manifest") != NULL);
    CHECK(!yard_is_there(&y, "root/name"));
    CHECK_EQ(yard_count(&y, "outside", ""), 2);
    parcel_free(through);
    parcel_free(at);
    parcel_free(both);
    parcel_free(up);
    yard_fini(&y);
}

/* It fails in the middle, for a reason that nobody could see before. It cannot be done again: what was moved is no
 * longer where it was. */
static void test_commit_that_failed(void) {
    struct yard y;
    char path[512];
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    yard_init(&y, MIB);
    parcel_file(p, "a", 0600, bytes_from_str("contents"));
    parcel_file(p, "a/b", 0600, bytes_from_str("more"));
    parcel_wrap(p, GOAL_PATH, "/to", false);
    struct depot_bundle *b = yard_open(&y, p);
    yard_take(&y, b, p);
    CHECK_EQ(depot_commit(b, y.why), -ENOTDIR);
    CHECK(strstr(y.why, "/to/a/b: ") != NULL);
    CHECK(yard_has(&y, "root/to/a", bytes_from_str("contents")));
    CHECK_EQ(unlink(yard_path(&y, "root/to/a", path)), 0);
    CHECK_EQ(depot_commit(b, y.why), -ENOTDIR);
    CHECK(strstr(y.why, "/to/a/b: ") != NULL);
    CHECK(!yard_is_there(&y, "root/to/a"));
    depot_close(b, false);
    CHECK(yard_nothing_partial(&y));
    parcel_free(p);
    yard_fini(&y);
}

/* The link comes between the first look and the commit. */
static void test_link_that_comes_late(void) {
    struct yard y;
    char path[512];
    struct parcel *p = small("name", "/to");
    yard_init(&y, MIB);
    CHECK_EQ(mkdir(yard_path(&y, "outside", path), 0700), 0);
    struct depot_bundle *b = yard_open(&y, p);
    yard_take(&y, b, p);
    CHECK_EQ(symlink("../outside", yard_path(&y, "root/to", path)), 0);
    CHECK_EQ(depot_commit(b, y.why), -ELOOP);
    CHECK_EQ(unlink(path), 0);
    yard_commit(&y, b); /* nothing was lost by it */
    depot_close(b, false);
    CHECK(yard_has(&y, "root/to/name", bytes_from_str("contents")));
    CHECK_EQ(yard_count(&y, "outside", ""), 0);
    parcel_free(p);
    yard_fini(&y);
}

/* ---- reading again ---- */

/* Whether every piece that is there can be read. */
static bool loads_all(struct yard *y, struct depot_bundle *b, const struct parcel *p,
                      const bool *have) {
    static uint8_t room[BUNDLE_PIECE_BYTES_MAX];
    bool right = true;
    for (uint32_t i = 0; i < p->pieces; i++) {
        long n = depot_load(b, i, room_of(room, sizeof room), y->why);
        struct bytes piece = parcel_piece(p, i);
        bool hole = parcel_is_hole(p, i);
        if (have != NULL && !have[i])
            right = right && n == -ENOENT;
        else
            right = right && n == (hole ? 0 : (long)piece.len) &&
                    (hole || bytes_equal(bytes_of(room, (size_t)n), piece));
    }
    return right;
}

static void check_loads(enum goal goal) {
    struct yard y;
    uint8_t *noise = parcel_noise(300000, 8);
    struct parcel *p = parcel_new(DIGEST_XXH3, 8192);
    yard_init(&y, 10 * MIB);
    p->packed = p->joined = true;
    parcel_file(p, "one", 0600, bytes_of(noise, 100000));
    parcel_file(p, "two", 0600, bytes_of(noise + 100000, 200000));
    parcel_wrap(p, goal, goal == GOAL_PATH ? "/" : "", false);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    for (uint32_t i = p->pieces; i-- > 0;) { /* the manifest comes last */
        CHECK(loads_all(&y, b, p, have));
        CHECK_EQ(depot_store(b, i, parcel_piece(p, i), y.why), 0);
        have[i] = true;
    }
    CHECK(loads_all(&y, b, p, NULL));
    yard_commit(&y, b);
    CHECK(loads_all(&y, b, p, NULL));
    CHECK_EQ(depot_load(b, 1, room_of(noise, 10), y.why), -ENOBUFS);
    if (goal == GOAL_PATH) { /* somebody changes what has come */
        yard_put(&y, "root/two", bytes_from_str("changed"));
        CHECK_EQ(depot_load(b, p->pieces - 1, room_of(noise, 300000), y.why), -ENODATA);
        noise[299999] ^= 1;
        yard_put(&y, "root/two", bytes_of(noise + 100000, 200000));
        CHECK_EQ(depot_load(b, p->pieces - 1, room_of(noise, 300000), y.why), -ESTALE);
    }
    depot_close(b, true);
    free(have);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
}

static void test_load(void) {
    check_loads(GOAL_PATH);
    check_loads(GOAL_SPOOL);
}

/* ---- running ---- */

static struct bytes program(const char *path) {
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &s) == 0);
    uint8_t *at = malloc((size_t)s.st_size);
    CHECK_EQ(files_read_all(fd, room_of(at, (size_t)s.st_size), 0), 0);
    close(fd);
    return bytes_of(at, (size_t)s.st_size);
}

/* Runs the cat at `path`; what it says its name is. */
static void run_cat(const char *path, char out[32]) {
    int pipes[2], status = -1;
    CHECK_EQ(pipe2(pipes, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], 1);
        execl(path, "cat", "/proc/self/comm", (char *)NULL);
        _exit(errno);
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], out, 31);
    out[n > 0 ? n : 0] = '\0';
    close(pipes[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

/* It can be run as soon as it is there, though the bundle is still open for others. */
static void test_run(void) {
    struct yard y;
    struct bytes cat = program("/bin/cat");
    char path[PATH_MAX], name[32];
    for (int i = 0; i < 2; i++) {
        struct parcel *p = parcel_new(DIGEST_XXH3, 65536);
        yard_init(&y, 10 * MIB);
        parcel_file(p, "bin/tabby", 0755, cat);
        parcel_wrap(p, i == 0 ? GOAL_PATH : GOAL_SPOOL, i == 0 ? "/" : "", false);
        struct depot_bundle *b = yard_open(&y, p);
        yard_take(&y, b, p);
        yard_commit(&y, b);
        CHECK(loads_all(&y, b, p, NULL));
        if (i == 0)
            snprintf(path, sizeof path, "%s/bin/tabby", y.root);
        else
            CHECK_EQ(yard_object(&y, cat, "tabby", path), 0);
        run_cat(path, name);
        CHECK_STR(name, "tabby\n");
        if (i == 1) {
            CHECK_EQ(yard_object(&y, cat, "tom", path), 0);
            run_cat(path, name);
            CHECK_STR(name, "tom\n");
        }
        depot_close(b, true);
        parcel_free(p);
        yard_fini(&y);
    }
    free((void *)(uintptr_t)cat.at);
}

/* ---- another file system ---- */

static bool other_file_system(void) {
    struct stat a, b;
    return stat("/tmp", &a) == 0 && stat("/dev/shm", &b) == 0 && a.st_dev != b.st_dev &&
           access("/dev/shm", W_OK) == 0;
}

/* The root is in memory, the spool is not. */
static void far_yard(struct yard *y, char root[64]) {
    snprintf(root, 64, "/dev/shm/storm-depot-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
    yard_init(y, MIB);
    depot_free(y->d);
    snprintf(y->root, sizeof y->root, "%s", root);
    yard_start(y);
}

/* Names in a folder that begin so. */
static uint32_t count_in(const char *folder, const char *begin) {
    struct yard y;
    snprintf(y.folder, sizeof y.folder, "%s", folder);
    return yard_count(&y, "", begin);
}

static void test_other_file_system(void) {
    struct yard y, at;
    char root[64], path[512];
    uint8_t *noise = parcel_noise(50000, 9);
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    far_yard(&y, root);
    snprintf(at.folder, sizeof at.folder, "%s", root);
    parcel_folder(p, "top", 0700);
    parcel_file(p, "top/file", 0640, bytes_of(noise, 50000));
    parcel_file(p, "top/empty", 0600, nothing);
    parcel_link(p, "top/link", "elsewhere");
    parcel_wrap(p, GOAL_PATH, "/", false);
    struct depot_bundle *b = yard_open(&y, p);
    yard_take(&y, b, p);
    CHECK_EQ(count_in(root, ".storm-"), 1);
    CHECK_EQ(count_in(root, ""), 1);
    CHECK(loads_all(&y, b, p, NULL));
    yard_commit(&y, b);
    CHECK_EQ(count_in(root, ".storm-"), 0);
    CHECK(yard_has(&at, "top/file", bytes_of(noise, 50000)));
    CHECK(yard_has(&at, "top/empty", nothing));
    CHECK(yard_is_there(&at, "top/link"));
    CHECK_EQ(yard_count(&at, "top", ""), 3);
    CHECK(loads_all(&y, b, p, NULL));
    depot_close(b, true);
    CHECK(yard_nothing_partial(&y));
    b = yard_open(&y, p); /* and if it is given up */
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    yard_fill(&y, b, p, have, 0, 2);
    depot_close(b, false);
    CHECK_EQ(count_in(root, ".storm-"), 0);
    CHECK(yard_nothing_partial(&y));
    files_remove(AT_FDCWD, yard_path(&at, "top", path)); /* and if it is interrupted */
    b = yard_open(&y, p);
    yard_pages(&y, b, p, have);
    yard_fill(&y, b, p, have, 0, 5);
    depot_close(b, true);
    CHECK_EQ(count_in(root, ".storm-"), 1);
    CHECK_EQ(yard_send(&y, p), p->pieces - 5);
    CHECK_EQ(count_in(root, ".storm-"), 0);
    CHECK(yard_has(&at, "top/file", bytes_of(noise, 50000)));
    free(have);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
    files_remove(AT_FDCWD, root);
}

/* Runs it in a process of its own, which ends in the middle. */
static void crash_after(struct yard *y, const struct parcel *p, uint32_t pieces) {
    depot_free(y->d);
    y->d = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        yard_start(y);
        struct depot_bundle *b = yard_open(y, p);
        bool *have = yard_bools(p);
        yard_pages(y, b, p, have);
        yard_fill(y, b, p, have, 0, pieces);
        _exit(tap_current_fail);
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

static void test_hidden_files_after_a_crash(void) {
    struct yard y;
    char root[64];
    uint8_t *noise = parcel_noise(50000, 10);
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    far_yard(&y, root);
    parcel_file(p, "file", 0600, bytes_of(noise, 50000));
    parcel_wrap(p, GOAL_PATH, "/", false);
    crash_after(&y, p, 5);
    CHECK_EQ(count_in(root, ".storm-"), 1);
    yard_start(&y);
    CHECK_EQ(count_in(root, ""), 0);
    yard_send(&y, p);
    CHECK_EQ(count_in(root, ""), 1);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
    files_remove(AT_FDCWD, root);
}

/* Somebody puts another file where ours is hidden: it is not written to. */
static void test_hidden_file_is_swapped(void) {
    struct yard y;
    char root[64], path[PATH_MAX + 128], outside[256] = "";
    uint8_t *noise = parcel_noise(500000, 11);
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    far_yard(&y, root);
    for (uint32_t i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        parcel_file(p, name, 0600, bytes_of(noise + i * 20000, 20000));
    }
    parcel_wrap(p, GOAL_PATH, "/", false);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    uint32_t first = yard_manifest_pieces(p);
    yard_fill(&y, b, p, have, 0, first + 1); /* the first piece of the first file */
    snprintf(outside, sizeof outside, "%s/outside", y.folder);
    yard_put(&y, "outside", bytes_from_str("stays"));
    DIR *dir = opendir(root);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] == '.' && e->d_name[1] == 's') {
            snprintf(path, sizeof path, "%s/%s", root, e->d_name);
            CHECK_EQ(unlink(path), 0);
            CHECK_EQ(symlink(outside, path), 0);
        }
    closedir(dir);
    yard_fill(&y, b, p, have, p->pieces - 50, p->pieces); /* others are open now */
    CHECK(depot_store(b, first + 1, parcel_piece(p, first + 1), y.why) < 0);
    CHECK(yard_has(&y, "outside", bytes_from_str("stays")));
    depot_close(b, false);
    CHECK_EQ(count_in(root, ""), 0);
    free(have);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
    files_remove(AT_FDCWD, root);
}

/* The same file system, but mounted once more: files cannot be moved there. */
static void test_bind_mount(void) {
    struct yard y;
    char other[512], path[512];
    struct parcel *p = small("name", "/mounted/deep");
    yard_init(&y, MIB);
    CHECK_EQ(mkdir(yard_path(&y, "other", other), 0700), 0);
    CHECK_EQ(mkdir(yard_path(&y, "root/mounted", path), 0700), 0);
    CHECK_EQ(mount(other, path, NULL, MS_BIND, NULL), 0);
    yard_send(&y, p);
    CHECK(yard_has(&y, "other/deep/name", bytes_from_str("contents")));
    CHECK_EQ(yard_count(&y, "other", ""), 1);
    CHECK_EQ(umount(path), 0);
    parcel_free(p);
    yard_fini(&y);
}

static void test_owner(void) {
    struct yard y;
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    static const char *const names[] = {"file", "folder", "link"};
    yard_init(&y, MIB);
    for (uint32_t i = 0; i < 3; i++) {
        struct entry e = parcel_plain(i, names[i], 06755);
        e.kind = (uint8_t[]){ENTRY_FILE, ENTRY_FOLDER, ENTRY_LINK}[i];
        e.uid = 12345;
        e.gid = 54321;
        e.target = i == 2 ? bytes_from_str("file") : nothing;
        parcel_entry(p, e);
    }
    parcel_wrap(p, GOAL_PATH, "/to", false);
    yard_send(&y, p);
    for (uint32_t i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "root/to/%s", names[i]);
        struct stat s = stat_of(&y, name);
        CHECK_EQ(s.st_uid, 12345);
        CHECK_EQ(s.st_gid, 54321);
        CHECK_EQ(s.st_mode & 07777, i == 2 ? 0777 : 06755); /* the owner comes first */
    }
    CHECK_EQ(stat_of(&y, "root/to").st_uid, 0);
    parcel_free(p);
    yard_fini(&y);
}

/* ---- no room ---- */

/* Sends all of it, as far as there is room; the reason that there is not. */
static int try_to_send(struct yard *y, const struct parcel *p) {
    struct depot_bundle *b = NULL;
    uint8_t bits[BUNDLE_PAGE_PIECES_MAX / 8];
    y->why[0] = '\0';
    int r = depot_open(y->d, parcel_descriptor(p), &b, y->why);
    for (uint32_t i = 0; i < bundle_page_count(&p->b) && r == 0; i++)
        r = depot_page(b, i, parcel_page(p, i), bits, y->why);
    for (uint32_t i = 0; i < p->pieces && r == 0; i++)
        r = depot_store(b, i, parcel_piece(p, i), y->why);
    if (r == 0)
        r = depot_commit(b, y->why);
    depot_close(b, false);
    return r;
}

static struct parcel *three_files(const uint8_t *noise, enum goal goal) {
    struct parcel *p = parcel_new(DIGEST_XXH3, 4096);
    parcel_folder(p, "top", 0755);
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "top/f%u", i);
        parcel_file(p, name, 0644, bytes_of(noise + i * 30000, 30000));
    }
    parcel_wrap(p, goal, goal == GOAL_PATH ? "/to" : "", false);
    return p;
}

/* With so much room in the end it works; with less there is a reason, and nothing is left. */
static void fill_up(enum goal goal) {
    uint8_t *noise = parcel_noise(100000, 12);
    struct parcel *p = three_files(noise, goal);
    uint32_t full = 0, sent = 0;
    for (uint32_t kib = 16; kib <= 256; kib += 4) {
        struct yard y = {.config.cache_bytes = MIB};
        char options[64];
        snprintf(y.folder, sizeof y.folder, "/tmp/storm-depot-XXXXXX");
        CHECK(mkdtemp(y.folder) != NULL);
        snprintf(options, sizeof options, "size=%uk", kib);
        CHECK_EQ(mount("storm", y.folder, "tmpfs", 0, options), 0);
        snprintf(y.spool, sizeof y.spool, "%s/spool", y.folder);
        snprintf(y.root, sizeof y.root, "%s/root", y.folder);
        CHECK_EQ(mkdir(y.root, 0755), 0);
        yard_start(&y);
        int r = try_to_send(&y, p);
        CHECK(r == 0 || (r == -ENOSPC && y.why[0] != '\0'));
        CHECK(yard_nothing_partial(&y));
        full += r != 0;
        sent += r == 0;
        char path[PATH_MAX];
        for (uint32_t i = 0; i < 3 && r == 0; i++) {
            struct bytes want = bytes_of(noise + i * 30000, 30000);
            snprintf(path, sizeof path, "root/to/top/f%u", i);
            CHECK(goal == GOAL_PATH ? yard_has(&y, path, want)
                                    : yard_object(&y, want, "f", path) == 0);
        }
        if (r != 0 && goal == GOAL_PATH)
            CHECK_EQ(yard_count(&y, "root", ""), 0);
        depot_free(y.d);
        CHECK_EQ(umount(y.folder), 0);
        rmdir(y.folder);
    }
    CHECK(full > 10 && sent > 5);
    parcel_free(p);
    free(noise);
}

static void test_no_room(void) {
    fill_up(GOAL_PATH);
    fill_up(GOAL_SPOOL);
}

/* As for somebody who is not root: modes count. */
static void obey_modes(bool obey) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    CHECK_EQ(syscall(SYS_capget, &head, data), 0);
    uint32_t bits = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
    data[0].effective =
        obey ? data[0].effective & ~bits : data[0].effective | (data[0].permitted & bits);
    CHECK_EQ(syscall(SYS_capset, &head, data), 0);
}

/* Whoever died in the commit had given files their modes already: they can still be written to. */
static void test_begun_by_one_who_died_in_the_commit(void) {
    struct yard y;
    char command[200];
    uint8_t *noise = parcel_noise(100000, 12);
    struct parcel *p = three_files(noise, GOAL_PATH);
    yard_init(&y, MIB);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    uint32_t half = p->pieces - 1;
    yard_pages(&y, b, p, have);
    yard_fill(&y, b, p, have, 0, half);
    depot_close(b, true);
    snprintf(command, sizeof command,
             "find %s -name 'f[0-9]' -exec chmod 0400 {} + -print | grep -q .", y.spool);
    CHECK_EQ(system(command), 0);
    obey_modes(true);
    CHECK_EQ(yard_send(&y, p), p->pieces - half);
    obey_modes(false);
    CHECK(yard_has(&y, "root/to/top/f2", bytes_of(p->contents + 60000, 30000)));
    free(have);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
}

/* A bundle that had no room is kept, and goes on when there is. */
static void test_room_again(void) {
    struct yard y = {.config.cache_bytes = MIB};
    uint8_t *noise = parcel_noise(100000, 12);
    struct parcel *p = three_files(noise, GOAL_PATH);
    struct depot_bundle *b = NULL;
    bool *have = yard_bools(p);
    int r = 0;
    uint32_t stored = 0;
    snprintf(y.folder, sizeof y.folder, "/tmp/storm-depot-XXXXXX");
    CHECK(mkdtemp(y.folder) != NULL);
    CHECK_EQ(mount("storm", y.folder, "tmpfs", 0, "size=80k"), 0);
    snprintf(y.spool, sizeof y.spool, "%s/spool", y.folder);
    snprintf(y.root, sizeof y.root, "%s/root", y.folder);
    CHECK_EQ(mkdir(y.root, 0755), 0);
    yard_start(&y);
    b = yard_open(&y, p);
    yard_pages(&y, b, p, have);
    while (stored < p->pieces && r == 0) {
        r = depot_store(b, stored, parcel_piece(p, stored), y.why);
        stored += r == 0;
    }
    CHECK_EQ(r, -ENOSPC);
    CHECK(strstr(y.why, "/to/top/f") != NULL);
    CHECK_EQ(mount("storm", y.folder, "tmpfs", MS_REMOUNT, "size=400k"), 0);
    CHECK_EQ(depot_store(b, stored, parcel_piece(p, stored), y.why), 0); /* at once */
    CHECK_EQ(depot_load(b, stored, room_of(noise, 8192), y.why), parcel_piece(p, stored).len);
    depot_close(b, true);
    CHECK_EQ(yard_send(&y, p), p->pieces - stored - 1);
    CHECK(yard_has(&y, "root/to/top/f2", bytes_of(p->contents + 60000, 30000)));
    depot_free(y.d);
    CHECK_EQ(umount(y.folder), 0);
    rmdir(y.folder);
    free(have);
    free(noise);
    parcel_free(p);
}

int main(void) {
    TEST(test_one_file);
    TEST(test_nothing_early);
    TEST(test_tree_in_any_order);
    TEST(test_merged);
    TEST(test_replace);
    TEST(test_holes);
    TEST(test_many_files);
    TEST(test_wrong_bytes);
    TEST(test_in_the_way);
    TEST(test_links_are_not_followed);
    TEST(test_link_that_comes_late);
    TEST(test_commit_that_failed);
    TEST(test_begun_by_one_who_died_in_the_commit);
    TEST(test_load);
    TEST(test_run);
    if (other_file_system()) {
        TEST(test_other_file_system);
        TEST(test_hidden_files_after_a_crash);
        TEST(test_hidden_file_is_swapped);
    } else {
        SKIP("test_other_file_system", "/dev/shm is not another file system");
    }
    if (geteuid() == 0) {
        TEST(test_bind_mount);
        TEST(test_owner);
        TEST(test_no_room);
        TEST(test_room_again);
    } else {
        SKIP("test_bind_mount", "only root can mount and give files away");
    }
    return tap_finish();
}
