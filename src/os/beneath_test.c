/* SPDX-License-Identifier: MIT */
/* Tests of folders beneath a root: nothing that others put in the way leads out of it. */
#include "os/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

struct scratch {
    char folder[32];
    int outside, root; /* outside/root */
};

static struct scratch scratch_new(void) {
    struct scratch s = {"/tmp/storm-beneath-XXXXXX", -1, -1};
    CHECK(mkdtemp(s.folder) != NULL);
    s.outside = open(s.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(mkdirat(s.outside, "root", 0700), 0);
    s.root = openat(s.outside, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(mkdirat(s.root, "a", 0700), 0);
    CHECK_EQ(mkdirat(s.root, "a/b", 0700), 0);
    CHECK_EQ(symlinkat("a", s.root, "near"), 0);
    CHECK_EQ(symlinkat("../..", s.root, "a/up"), 0);
    CHECK_EQ(symlinkat("/", s.root, "far"), 0);
    int fd = openat(s.root, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
    return s;
}

static void scratch_free(struct scratch *s) {
    static const char *const links[] = {"near", "far", "file", "a/up"};
    static const char *const folders[] = {"a/b/c/d", "a/b/c", "a/b", "a", ""};
    char path[64];
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        unlinkat(s->root, links[i], 0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/root/%s", s->folder, folders[i]);
        rmdir(path);
    }
    close(s->root);
    close(s->outside);
    CHECK_EQ(rmdir(s->folder), 0);
}

/* Whether the descriptor is that of this folder; closes it. */
static bool leads_to(const struct scratch *s, int fd, const char *path) {
    struct stat a, b;
    bool same = fd >= 0 && fstat(fd, &a) == 0 && fstatat(s->root, path, &b, 0) == 0 &&
                a.st_ino == b.st_ino && a.st_dev == b.st_dev;
    if (fd >= 0)
        close(fd);
    return same;
}

static void check_both(const struct scratch *s, const char *path, int error) {
    CHECK_EQ(beneath_open(s->root, path), error);
    CHECK_EQ(beneath_walk(s->root, path), error);
}

static void test_open(void) {
    struct scratch s = scratch_new();
    static const char *const good[] = {"a", "a/b", "a//b/"};
    for (size_t i = 0; i < 3; i++) {
        CHECK(leads_to(&s, beneath_open(s.root, good[i]), good[i]));
        CHECK(leads_to(&s, beneath_walk(s.root, good[i]), good[i]));
    }
    CHECK(leads_to(&s, beneath_open(s.root, ""), "."));
    CHECK(leads_to(&s, beneath_walk(s.root, ""), "."));
    check_both(&s, "none", -ENOENT);
    check_both(&s, "a/none/b", -ENOENT);
    check_both(&s, "file", -ENOTDIR);
    check_both(&s, "file/b", -ENOTDIR);
    scratch_free(&s);
}

static void test_no_way_out(void) {
    struct scratch s = scratch_new();
    static const char *const links[] = {"near", "near/b", "far", "far/etc", "a/up", "a/up/x"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        check_both(&s, links[i], -ELOOP);
    check_both(&s, "..", -EINVAL);
    check_both(&s, "a/../..", -EINVAL);
    check_both(&s, "a/..", -EINVAL);
    check_both(&s, "./a", -EINVAL);
    CHECK_EQ(beneath_make(s.root, "near/new"), -ELOOP);
    CHECK_EQ(beneath_make(s.root, "far/tmp/storm-beneath-new"), -ELOOP);
    CHECK_EQ(beneath_make(s.root, "../new"), -EINVAL);
    CHECK_EQ(beneath_make(s.root, "file/new"), -ENOTDIR);
    scratch_free(&s);
}

static void test_make(void) {
    struct scratch s = scratch_new();
    CHECK(leads_to(&s, beneath_make(s.root, "a/b/c/d"), "a/b/c/d"));
    CHECK(leads_to(&s, beneath_make(s.root, "a/b/c/d"), "a/b/c/d"));
    CHECK(leads_to(&s, beneath_make(s.root, ""), "."));
    scratch_free(&s);
}

static void test_nearest(void) {
    struct scratch s = scratch_new();
    size_t len = 99;
    CHECK(leads_to(&s, beneath_nearest(s.root, "a/b/c/d", &len), "a/b"));
    CHECK_EQ(len, 3);
    CHECK(leads_to(&s, beneath_nearest(s.root, "c/d", &len), "."));
    CHECK_EQ(len, 0);
    CHECK(leads_to(&s, beneath_nearest(s.root, "a/b", &len), "a/b"));
    CHECK_EQ(len, 3);
    CHECK_EQ(beneath_nearest(s.root, "near/c", &len), -ELOOP);
    CHECK_EQ(beneath_nearest(s.root, "file/c", &len), -ENOTDIR);
    scratch_free(&s);
}

int main(void) {
    TEST(test_open);
    TEST(test_no_way_out);
    TEST(test_make);
    TEST(test_nearest);
    return tap_finish();
}
