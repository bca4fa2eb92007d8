/* SPDX-License-Identifier: MIT */
/* What a survey says of files is what is in them; what changes, leads out or cannot be sent is refused by name. */
#include "os/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "sanitized.h"
#include "survey_rig.h"
#include "tap.h"

/* ---- Somebody who meddles ----------------------------------------------------------------------- */

struct meddler {
    const char *path;
    int what; /* 0: nothing, 1: shorter, 2: longer, 3: a byte, 4: stop */
    uint64_t from, last;
    uint32_t calls;
};

static bool meddle(void *context, uint64_t done, uint64_t all) {
    struct meddler *m = context;
    CHECK(done >= m->last && done <= all);
    m->last = done;
    m->calls++;
    if (m->what == 0 || done < m->from)
        return true;
    if (m->what == 4)
        return false;
    int fd = open(m->path, O_WRONLY | O_CLOEXEC);
    struct stat s;
    CHECK_EQ(fstat(fd, &s), 0);
    if (m->what == 1)
        CHECK_EQ(ftruncate(fd, 1000), 0);
    else if (m->what == 2)
        CHECK_EQ(pwrite(fd, "more", 4, s.st_size), 4);
    else if (m->what == 3)
        CHECK_EQ(pwrite(fd, "x", 1, 100), 1);
    close(fd);
    m->what = 0;
    return true;
}

/* ---- Files ------------------------------------------------------------------------------------- */

static void check_file(size_t len) {
    put("file", len, len);
    for (enum digest_kind kind = 0; kind < DIGEST_KINDS; kind++) {
        struct survey_config c = plain();
        c.digest = kind;
        struct survey *s = look_well(&c, "file");
        struct stat st;
        CHECK_EQ(stat("file", &st), 0);
        if (s == NULL)
            continue;
        struct entry e = entry_named(s, "thing", NULL);
        CHECK(e.kind == ENTRY_FILE && e.bytes == len && e.mode == (st.st_mode & 07777));
        CHECK(e.uid == st.st_uid && e.gid == st.st_gid);
        CHECK(e.mtime_ns == st.st_mtim.tv_sec * (int64_t)NS_PER_S + st.st_mtim.tv_nsec);
        CHECK_EQ(survey_bytes_read(s), len);
        CHECK_EQ(survey_entries(s), 1);
        survey_free(s);
    }
}

/* None, few, just below and above what has pieces of its own, one thread and two. */
static void test_files_of_all_sizes(void) {
    static const size_t sizes[] = {0, 1, 32767, 32768, 131072, 1 << 20, 2 << 20, (5 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_file(sizes[i]);
    away("file");
}

/* As many pieces as can be on many pages. */
static void test_many_pages(void) {
    put("file", 3 << 20, 1);
    struct survey_config c = plain();
    c.piece_bytes = 1; /* the least */
    struct survey *s = look_well(&c, "file");
    CHECK(s != NULL && bundle_page_count(survey_bundle(s)) > 8);
    CHECK(s != NULL && survey_bundle(s)->piece_bytes <= 7168);
    survey_free(s);
    away("file");
}

/* A byte more in front: nearly all pieces are the same. */
static void test_changes_stay_local(void) {
    enum { LEN = 8 << 20 };
    put("one", LEN, 5);
    int fd = make("two");
    CHECK_EQ(write(fd, "x", 1), 1);
    fill_at(fd, 1, LEN, 5);
    close(fd);
    struct survey_config c = plain();
    struct survey *one = look_well(&c, "one"), *two = look_well(&c, "two");
    uint32_t known = 0, count = two != NULL ? survey_bundle(two)->pieces : 0;
    for (uint32_t i = 0; i < count; i++)
        known += memmem(survey_table(one).at, survey_table(one).len,
                        survey_table(two).at + i * bundle_row_bytes(DIGEST_XXH3),
                        bundle_row_bytes(DIGEST_XXH3)) != NULL;
    CHECK(count > 20 && known >= count - 6 && known < count);
    survey_free(one);
    survey_free(two);
    away("one");
    away("two");
}

/* ---- Folders ----------------------------------------------------------------------------------- */

static void make_tree(void) {
    folder("tree");
    folder("tree/sub");
    folder("tree/empty");
    folder("tree/sub/deeper");
    put("tree/z-small", 100, 1);
    put("tree/a-large", 300000, 2);
    put("tree/sub/none", 0, 3);
    put("tree/sub/small", 5000, 4);
    put("tree/sub/deeper/large", 200000, 5);
    put("tree/sub/deeper/small", 32000, 6);
    CHECK(symlink("sub", "tree/to-folder") == 0);
    CHECK(symlink("/etc/passwd", "tree/sub/out") == 0);
    CHECK(symlink("nowhere", "tree/sub/nowhere") == 0);
    CHECK(chmod("tree/sub/small", 04755) == 0);
}

/* Where the piece begins that has this byte of the stream. */
static uint64_t piece_begin(const struct survey *s, uint64_t offset, uint32_t *ret_bytes) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < survey_bundle(s)->pieces; i++) {
        *ret_bytes = row_of(s, i).bytes;
        if (offset < at + *ret_bytes)
            break;
        at += *ret_bytes;
    }
    return at;
}

static void test_folder(void) {
    make_tree();
    struct survey_config c = plain();
    struct survey *s = look_well(&c, "tree");
    if (s == NULL)
        return;
    CHECK_EQ(survey_entries(s), 13);
    CHECK_EQ(entry_named(s, "thing", NULL).kind, ENTRY_FOLDER);
    CHECK_EQ(entry_named(s, "thing/empty", NULL).kind, ENTRY_FOLDER);
    CHECK_EQ(entry_named(s, "thing/sub/none", NULL).bytes, 0);
    CHECK_EQ(entry_named(s, "thing/sub/small", NULL).mode, 04755);
    struct entry link = entry_named(s, "thing/to-folder", NULL);
    CHECK(link.kind == ENTRY_LINK && bytes_equal(link.target, bytes_from_str("sub")));
    link = entry_named(s, "thing/sub/out", NULL);
    CHECK(link.kind == ENTRY_LINK && bytes_equal(link.target, bytes_from_str("/etc/passwd")));
    CHECK_EQ(entry_named(s, "thing/sub/nowhere", NULL).kind, ENTRY_LINK);
    survey_free(s);
    away("tree");
}

/* Small files share a piece; manifest and large files begin and end theirs. */
static void test_who_shares_pieces(void) {
    make_tree();
    struct survey_config c = plain();
    struct survey *s = look_well(&c, "tree");
    if (s == NULL)
        return;
    static const char *const small[] = {"thing/z-small", "thing/sub/small",
                                        "thing/sub/deeper/small"};
    static const char *const large[] = {"thing/a-large", "thing/sub/deeper/large"};
    uint64_t offset = 0;
    uint32_t bytes = 0;
    for (int i = 0; i < 3; i++) {
        entry_named(s, small[i], &offset);
        CHECK_EQ(piece_begin(s, offset, &bytes), survey_manifest(s).len);
        CHECK_EQ(bytes, 100 + 5000 + 32000);
    }
    for (int i = 0; i < 2; i++) {
        struct entry e = entry_named(s, large[i], &offset);
        CHECK_EQ(piece_begin(s, offset, &bytes), offset);
        uint64_t last = piece_begin(s, offset + e.bytes - 1, &bytes);
        CHECK_EQ(last + bytes, offset + e.bytes);
    }
    survey_free(s);
    away("tree");
}

/* The order in which files were made does not show. */
static void test_same_files_same_stream(void) {
    static const char *const names[] = {"t/b", "t/a", "t/c", "t/B", "t/aa"};
    struct survey_config c = plain();
    struct survey *s[2];
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    for (int round = 0; round < 2; round++) {
        folder("t");
        for (size_t i = 0; i < 5; i++) {
            size_t k = round == 0 ? i : 4 - i;
            put(names[k], 1000 * k, k);
            CHECK_EQ(utimensat(AT_FDCWD, names[k], times, 0), 0);
        }
        CHECK_EQ(utimensat(AT_FDCWD, "t", times, 0), 0);
        s[round] = look_well(&c, "t");
        away("t");
    }
    static const char *const sorted[] = {"thing",    "thing/B", "thing/a",
                                         "thing/aa", "thing/b", "thing/c"};
    struct entry e;
    size_t at = 0;
    for (size_t i = 0; i < 6 && s[0] != NULL; i++) {
        CHECK_EQ(entry_next(survey_manifest(s[0]), &at, &e), 1);
        CHECK(bytes_equal(e.path, bytes_from_str(sorted[i])));
    }
    if (s[0] != NULL && s[1] != NULL) {
        CHECK(bytes_equal(survey_manifest(s[0]), survey_manifest(s[1])));
        CHECK(bytes_equal(survey_table(s[0]), survey_table(s[1])));
    }
    survey_free(s[0]);
    survey_free(s[1]);
}

static void test_many_small_files(void) {
    enum { COUNT = 3000 };
    folder("many");
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        char path[32];
        snprintf(path, sizeof path, "many/%u", i);
        put(path, i % 300, i);
        bytes += i % 300;
    }
    struct survey_config c = plain();
    struct survey *s = look_well(&c, "many");
    CHECK(s != NULL && survey_entries(s) == COUNT + 1);
    CHECK(s != NULL && survey_bytes_read(s) == bytes);
    CHECK(s != NULL && survey_bundle(s)->pieces < 16);
    survey_free(s);
    away("many");
}

/* As deep as a path may be; then it is refused, and nothing breaks. */
static void test_deep_folders(void) {
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    int at = AT_FDCWD;
    struct survey_config c = plain();
    struct survey *s;
    CHECK_EQ(mkdir("deep", 0755), 0);
    at = open("deep", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int depth = 1; depth <= 24; depth++) {
        CHECK_EQ(mkdirat(at, name, 0755), 0);
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
        if (depth == 20) { /* 5 + 20 * 201 */
            CHECK_EQ(look(&c, "deep", &s), 0);
            CHECK(s != NULL && survey_entries(s) == 21);
            survey_free(s);
        }
    }
    close(at);
    CHECK_EQ(look(&c, "deep", &s), -ENAMETOOLONG);
    CHECK(strncmp(why, "...ddd", 6) == 0 && strstr(why, "ddd: paths") != NULL);
    away("deep");
}

/* ---- Holes ------------------------------------------------------------------------------------- */

static bool has_holes(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && s.st_blocks * 512 < s.st_size / 2;
}

/* A hole that is not worth it, bytes, a hole, bytes, another that is not, bytes, and a hole at the end. */
static void test_holes(void) {
    int fd = make("sparse");
    fill_at(fd, 64 << 10, 200000, 1);
    fill_at(fd, 40 << 20, 50000, 2);
    fill_at(fd, (40 << 20) + 100000, 50000, 3);
    CHECK_EQ(ftruncate(fd, 64 << 20), 0);
    close(fd);
    struct survey_config c = plain();
    struct survey *s = look_well(&c, "sparse");
    if (s == NULL || !has_holes("sparse")) {
        printf("# no holes here\n");
        survey_free(s);
        return;
    }
    uint32_t holes = 0;
    uint64_t hole_bytes = 0;
    for (uint32_t i = 0; i < survey_bundle(s)->pieces; i++) {
        struct piece p = row_of(s, i);
        holes += p.hole;
        hole_bytes += p.hole ? p.bytes : 0;
    }
    CHECK_EQ(holes, 2);
    /* In memory a file may be in units of 2 MiB: what is written touches two of them. */
    CHECK(hole_bytes > (59 << 20) && hole_bytes < (64 << 20) - 300000);
    CHECK(survey_bytes_read(s) < 5 * MIB);
    survey_free(s);
    CHECK_EQ(truncate("sparse", 0), 0);
    CHECK_EQ(truncate("sparse", 1 << 20), 0); /* nothing but a hole, in one thread */
    s = look_well(&c, "sparse");
    CHECK(s != NULL && survey_bundle(s)->pieces == 2 && row_of(s, 1).hole);
    survey_free(s);
    away("sparse");
}

static void test_beyond_four_gigabytes(void) {
    int fd = make("huge");
    off_t far = (off_t)(4 * GIB + 300 * MIB);
    fill_at(fd, 0, 300000, 1);
    fill_at(fd, far, 300000, 2);
    close(fd);
    if (!has_holes("huge")) {
        printf("# no holes here\n");
        return;
    }
    struct survey_config c = plain();
    struct survey *s = look_well(&c, "huge");
    if (s != NULL) {
        uint32_t holes = 0;
        for (uint32_t i = 0; i < survey_bundle(s)->pieces; i++)
            holes += row_of(s, i).hole;
        CHECK_EQ(holes, 5); /* of a gigabyte, the last shorter */
        uint8_t far_bytes[1000], expected[1000];
        uint64_t offset = survey_manifest(s).len + (uint64_t)far;
        CHECK_EQ(survey_read(s, offset, room_of(far_bytes, 1000), why), 0);
        fd = open("huge", O_RDONLY | O_CLOEXEC);
        CHECK_EQ(pread(fd, expected, 1000, far), 1000);
        close(fd);
        CHECK(memcmp(far_bytes, expected, 1000) == 0);
        CHECK_EQ(survey_bundle(s)->bytes, offset + 300000);
    }
    survey_free(s);
    /* Who stops it does not wait for the other thread to sum all of that. */
    struct meddler m = {.what = 4};
    c.progress = meddle;
    c.context = &m;
    clock_t begin = clock();
    check_refused(&c, "huge", -ECANCELED, "stopped");
    CHECK(clock() - begin < CLOCKS_PER_SEC);
    away("huge");
}

/* ---- What cannot be sent ----------------------------------------------------------------------- */

static void test_strange_kinds_are_refused(void) {
    struct survey_config c = plain();
    check_refused(&c, "/dev/null", -EOPNOTSUPP, "a device");
    folder("odd");
    CHECK_EQ(mkfifo("odd/pipe", 0600), 0);
    check_refused(&c, "odd/pipe", -EOPNOTSUPP, "a named pipe");
    struct survey *s;
    CHECK_EQ(look(&c, "odd", &s), -EOPNOTSUPP); /* also inside */
    CHECK(strstr(why, "odd/pipe") != NULL);
    unlink("odd/pipe");
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "odd/socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    check_refused(&c, "odd/socket", -EOPNOTSUPP, "a socket");
    close(fd);
    away("odd");
    check_refused(&c, "missing", -ENOENT, "No such file");
    check_refused(&c, "missing/file", -ENOENT, "No such file");
    if (geteuid() != 0) {
        put("secret", 10, 1);
        chmod("secret", 0);
        check_refused(&c, "secret", -EACCES, "ermission");
        away("secret");
    }
}

/* Reasons are one line of a certain length, whatever the name. */
static void test_reasons_are_short(void) {
    struct survey_config c = plain();
    struct survey *s;
    char name[300];
    memset(name, 'n', sizeof name);
    memcpy(name + 200, "\xC3\xA4\n", 3);
    memcpy(name + 240, "end", 4);
    CHECK_EQ(look(&c, name, &s), -ENOENT);
    CHECK(strncmp(why, "...", 3) == 0 && strstr(why, "\xC3\xA4?nnn") != NULL);
    CHECK(strstr(why, "end: No such") != NULL);
}

static int look_named(const char *one, const char *two, struct survey **ret) {
    struct survey_config c = plain();
    struct survey_item items[] = {{.path = "a", .name = one}, {.path = "b", .name = two}};
    *ret = NULL;
    return survey_new(&c, items, two != NULL ? 2 : 1, ret, why);
}

static void test_names(void) {
    struct survey *s;
    put("a", 10, 1);
    put("b", 40000, 2);
    CHECK_EQ(look_named("lib/x", "lib/y", &s), 0);
    if (s != NULL)
        check_descriptor(s), check_pieces(s);
    survey_free(s);
    CHECK_EQ(look_named("x", "x", &s), -EEXIST);
    CHECK_EQ(look_named("x/y", "x", &s), -EEXIST);
    CHECK_EQ(look_named("x", "x-y", &s), 0);
    survey_free(s);
    static const char *const bad[] = {"", "/x", "x/", "..", "x/../y", "."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(look_named(bad[i], NULL, &s), -EINVAL);
    struct survey_config c = plain();
    struct survey_item three[] = {
        {.path = "a", .name = "x"}, {.path = "b", .name = "x/y"}, {.path = "b", .name = "x-"}};
    CHECK_EQ(survey_new(&c, three, 3, &s, why), -EEXIST);
    CHECK_EQ(survey_new(&c, NULL, 0, &s, why), -EINVAL);
    away("a");
    away("b");
}

/* ---- Links, and what is beneath ---------------------------------------------------------------- */

static void test_following(void) {
    put("target", 50000, 1);
    CHECK_EQ(symlink("target", "link"), 0);
    struct survey_config c = plain();
    struct survey *s = look_well(&c, "link");
    CHECK(s != NULL && entry_named(s, "thing", NULL).kind == ENTRY_LINK);
    survey_free(s);
    c.follow = true;
    s = look_well(&c, "link");
    CHECK(s != NULL && entry_named(s, "thing", NULL).bytes == 50000);
    survey_free(s);
    folder("dir");
    put("dir/file", 50000, 1);
    CHECK_EQ(symlink("../target", "dir/inner"), 0);
    CHECK_EQ(unlink("link"), 0);
    CHECK_EQ(symlink("dir", "link"), 0);
    s = look_well(&c, "link");
    CHECK(s != NULL && entry_named(s, "thing", NULL).kind == ENTRY_FOLDER);
    CHECK(s != NULL && entry_named(s, "thing/inner", NULL).kind == ENTRY_LINK);
    survey_free(s);
    away("link");
    away("dir");
    away("target");
}

static void test_beneath(void) {
    folder("root");
    folder("root/in");
    put("root/in/file", 40000, 1);
    put("outside", 10, 1);
    CHECK_EQ(symlink("../outside", "root/out"), 0);
    CHECK_EQ(symlink("..", "root/up"), 0);
    CHECK_EQ(symlink("in/../in/file", "root/fine"), 0);
    CHECK_EQ(symlink("/etc", "root/far"), 0);
    struct survey_config c = plain();
    c.beneath = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    c.follow = true;
    struct survey *s;
    if (look(&c, "in", &s) == -ENOSYS) {
        printf("# this kernel has no openat2\n");
        return;
    }
    survey_free(s);
    static const char *const fine[] = {"in/file", "/in/file", "in", "fine", "in/../in/file", "//"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        survey_free(look_well(&c, fine[i]));
    static const char *const bad[] = {
        "out",        "../outside",  "up/outside",     "in/../../outside",
        "far/passwd", "/../outside", "up/root/in/file"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused(&c, bad[i], -EXDEV, "leads out");
    c.follow = false;
    s = look_well(&c, "out"); /* the link itself: nobody follows it */
    CHECK(s != NULL && entry_named(s, "thing", NULL).kind == ENTRY_LINK);
    survey_free(s);
    close(c.beneath);
    away("root");
    away("outside");
}

/* A folder inside another is exchanged for a link: even the very same file is not read through it. */
static void test_links_put_there_meanwhile(void) {
    folder("dir");
    folder("dir/sub");
    put("dir/sub/file", 50000, 1);
    struct survey_config c = plain();
    struct survey *s;
    uint8_t byte;
    CHECK_EQ(look(&c, "dir", &s), 0);
    uint64_t offset = s != NULL ? survey_manifest(s).len : 0;
    CHECK_EQ(rename("dir/sub", "other"), 0);
    CHECK_EQ(symlink("../other", "dir/sub"), 0);
    CHECK_EQ(survey_read(s, offset, room_of(&byte, 1), why), -ESTALE);
    CHECK(strstr(why, "dir/sub/file") != NULL);
    CHECK_EQ(unlink("dir/sub"), 0);
    CHECK_EQ(rename("other", "dir/sub"), 0);
    CHECK_EQ(survey_read(s, offset, room_of(&byte, 1), why), 0); /* it is there again */
    survey_free(s);
    away("dir");
}

/* ---- Files that change ------------------------------------------------------------------------- */

static void test_changes_meanwhile(void) {
    for (int what = 1; what <= 3; what++) {
        put("file", 16 << 20, 1);
        struct meddler m = {.path = "file", .what = what, .from = 1};
        struct survey_config c = plain();
        c.progress = meddle;
        c.context = &m;
        check_refused(&c, "file", -ESTALE, "meanwhile");
        CHECK_EQ(m.what, 0);
    }
    away("file");
}

static void test_progress_and_stopping(void) {
    put("file", 100 << 20, 1); /* longer than one thread may be ahead */
    struct meddler m = {.path = "file"};
    struct survey_config c = plain();
    c.progress = meddle;
    c.context = &m;
    survey_free(look_well(&c, "file"));
    CHECK(m.calls > 3 && m.last == 100 << 20);
    for (uint64_t from = 1; from <= 100 << 20; from += 33 << 20) {
        m = (struct meddler){.path = "file", .what = 4, .from = from};
        check_refused(&c, "file", -ECANCELED, "stopped");
    }
    away("file");
    folder("many"); /* names are gathered: that can be stopped, too */
    for (int i = 0; i < 1100; i++) {
        char path[32];
        snprintf(path, sizeof path, "many/%d", i);
        put(path, 0, 0);
    }
    m = (struct meddler){.path = "many", .what = 4};
    check_refused(&c, "many", -ECANCELED, "stopped");
    away("many");
}

static int read_first(struct survey *s) {
    uint8_t bytes[5000];
    return survey_read(s, survey_bundle(s)->manifest_bytes, room_of(bytes, sizeof bytes), why);
}

/* Whether the file is open already or not, and however it is read: each change is noticed. */
static void test_changes_afterwards(void) {
    for (int what = 0; what < 10 * SEND_TYPES; what++) {
        put("file", 50000, 1);
        struct survey_config c = plain();
        struct survey *s;
        c.send = (enum send_type)(what / 10);
        CHECK_EQ(look(&c, "file", &s), 0);
        if (what % 2 == 1)
            CHECK_EQ(read_first(s), 0);
        int fd = open("file", O_WRONLY | O_CLOEXEC);
        struct timespec old[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 5}};
        if (what % 10 / 2 == 0)
            CHECK_EQ(ftruncate(fd, 100), 0);
        else if (what % 10 / 2 == 1)
            CHECK_EQ(pwrite(fd, "x", 1, 60000), 1);
        else if (what % 10 / 2 == 2)
            CHECK_EQ(pwrite(fd, "x", 1, 10), 1);
        else if (what % 10 / 2 == 3)
            CHECK_EQ(futimens(fd, old), 0);
        close(fd);
        if (what % 10 / 2 == 4) {
            put("new", 50000, 1);
            CHECK_EQ(rename("new", "file"), 0);
        }
        CHECK_EQ(read_first(s), -ESTALE);
        CHECK(strncmp(why, "file: it ", 9) == 0);
        survey_free(s);
    }
    away("file");
    put("file", 50000, 1);
    struct survey_config c = plain();
    struct survey *s;
    CHECK_EQ(look(&c, "file", &s), 0);
    away("file");
    CHECK_EQ(read_first(s), -ESTALE);
    CHECK(strstr(why, "gone") != NULL);
    uint8_t bytes[10];
    CHECK_EQ(survey_read(s, survey_bundle(s)->bytes - 9, room_of(bytes, 10), why), -ERANGE);
    CHECK_EQ(survey_read(s, UINT64_MAX, room_of(bytes, 10), why), -ERANGE);
    survey_free(s);
}

/* A file of its own is sent from where it lies; what is in several files, or of another send type, is not. */
static void test_lends(void) {
    folder("dir");
    put("dir/large", 1 << 20, 1);
    put("dir/small", 100, 2);
    for (enum send_type t = SEND_READ; t < SEND_TYPES; t++) {
        struct survey_config c = plain();
        struct survey_loan l;
        static uint8_t bytes[100000];
        c.send = t;
        struct survey *s = look_well(&c, "dir");
        uint64_t end = survey_bundle(s)->bytes;
        CHECK_EQ(survey_lend(s, 0, 1, &l, why), 0); /* the manifest */
        CHECK_EQ(survey_lend(s, end - (1 << 20) - 1, 2, &l, why), 0);
        CHECK_EQ(survey_lend(s, end - 1, 2, &l, why), 0);
        CHECK_EQ(survey_read(s, end - sizeof bytes, room_of(bytes, sizeof bytes), why), 0);
        int lent = survey_lend(s, end - sizeof bytes, sizeof bytes, &l, why);
        CHECK_EQ(lent, t == SEND_MMAP_ALL || t == SEND_FILE);
        if (lent == 1) {
            CHECK_EQ(survey_read(s, end - (1 << 20) - 1, room_of(bytes, 1), why), 0); /* another */
            CHECK(memcmp(l.bytes.at + 1, bytes + 1, sizeof bytes - 1) == 0);
            CHECK_EQ(l.offset, (1 << 20) - sizeof bytes);
            CHECK_EQ(survey_loan_check(s, &l, why), 0);
            CHECK_EQ(truncate("dir/large", 5000), 0);
            CHECK_EQ(survey_loan_check(s, &l, why), -ESTALE);
            CHECK(strstr(why, "dir/large: it was changed") != NULL);
            original_drop(l.file);
            CHECK_EQ(survey_lend(s, end - 10, 10, &l, why), -ESTALE);
            put("dir/large", 1 << 20, 1);
        }
        survey_free(s);
    }
    away("dir");
}

/* ---- Memory ------------------------------------------------------------------------------------ */

/* The most memory this process has had, in KiB. */
static long peak_kib(void) {
    FILE *f = fopen("/proc/self/status", "re");
    char line[200];
    long kib = -1;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return kib;
}

/* In a process that has not had more before. */
static void test_memory(void) {
    int fd = make("dense");
    if (posix_fallocate(fd, 0, 128 << 20) != 0) {
        printf("# no room for a large file\n");
        close(fd);
        away("dense");
        return;
    }
    close(fd);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct survey_config c = plain();
        struct survey *s;
        long before = peak_kib();
        c.digest = DIGEST_SHA256;
        bool good = look(&c, "dense", &s) == 0;
        long after = peak_kib();
        printf("# %ld KiB for 128 MiB\n", after - before);
        fflush(stdout);
        _exit(good && before > 0 && after - before < 4 << 10 ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    away("dense");
}

int main(void) {
    if (!rig_enter())
        return 1;
    if (SANITIZED)
        SKIP("test_memory", "sanitizers need memory of their own");
    else
        TEST(test_memory);
    TEST(test_files_of_all_sizes);
    TEST(test_many_pages);
    TEST(test_changes_stay_local);
    TEST(test_folder);
    TEST(test_who_shares_pieces);
    TEST(test_same_files_same_stream);
    TEST(test_many_small_files);
    TEST(test_deep_folders);
    TEST(test_holes);
    TEST(test_beyond_four_gigabytes);
    TEST(test_strange_kinds_are_refused);
    TEST(test_reasons_are_short);
    TEST(test_names);
    TEST(test_following);
    TEST(test_beneath);
    TEST(test_links_put_there_meanwhile);
    TEST(test_changes_meanwhile);
    TEST(test_progress_and_stopping);
    TEST(test_changes_afterwards);
    TEST(test_lends);
    rig_leave();
    return tap_finish();
}
