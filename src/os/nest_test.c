/* SPDX-License-Identifier: MIT */
/* Folders in places where others may write: what is made, what is refused. */
#include "os/nest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

enum { PLACE_MAX = 128 };

/* A place as /tmp is. */
struct place {
    char at[32];
};

static struct place place_new(void) {
    struct place p = {"/tmp/storm-nest-XXXXXX"};
    CHECK(mkdtemp(p.at) != NULL);
    CHECK_EQ(chmod(p.at, 01777), 0);
    return p;
}

static const char *in(const struct place *p, const char *name, char out[PLACE_MAX]) {
    snprintf(out, PLACE_MAX, "%s/%s", p->at, name);
    return out;
}

static void place_free(const struct place *p) {
    char command[PLACE_MAX + 16];
    snprintf(command, sizeof command, "rm -rf %s", p->at);
    CHECK_EQ(system(command), 0);
}

static void test_make(void) {
    struct place p = place_new();
    char path[PLACE_MAX], why[NEST_WHY_MAX] = "";
    struct stat s;
    CHECK_EQ(nest_make(in(&p, "a/b", path), why), 0);
    CHECK(stat(in(&p, "a", path), &s) == 0 && (s.st_mode & 0777) == 0700);
    CHECK(stat(in(&p, "a/b", path), &s) == 0 && (s.st_mode & 0777) == 0700);
    CHECK_EQ(nest_make(in(&p, "a/b/", path), why), 0); /* it is there */
    CHECK_EQ(nest_make("relative", why), -EINVAL);
    nest_leave(in(&p, "a/b", path), 2);
    CHECK(stat(in(&p, "a", path), &s) < 0);
    CHECK(stat(p.at, &s) == 0);
    place_free(&p);
}

static void test_leave_stops_at_others(void) {
    struct place p = place_new();
    char path[PLACE_MAX], why[NEST_WHY_MAX];
    CHECK_EQ(nest_make(in(&p, "a/b/c", path), why), 0);
    CHECK_EQ(nest_make(in(&p, "a/d", path), why), 0);
    nest_leave(in(&p, "a/b/c", path), 3);
    CHECK(access(in(&p, "a/b", path), F_OK) < 0);
    CHECK_EQ(access(in(&p, "a/d", path), F_OK), 0);
    place_free(&p);
}

static void test_refused(void) {
    struct place p = place_new();
    char path[PLACE_MAX], other[PLACE_MAX], why[NEST_WHY_MAX] = "";
    CHECK_EQ(mkdir(in(&p, "wide", path), 0700), 0);
    CHECK_EQ(chmod(path, 0755), 0);
    CHECK_EQ(nest_make(path, why), -EACCES);
    CHECK(strstr(why, "others have access") != NULL);
    CHECK_EQ(nest_make(in(&p, "wide/inner", path), why), 0); /* nobody else can write there */
    CHECK_EQ(chmod(in(&p, "wide", path), 0777), 0);
    CHECK_EQ(nest_make(in(&p, "wide/inner", path), why), -EACCES);
    CHECK_EQ(symlink(in(&p, "wide", other), in(&p, "link", path)), 0);
    CHECK_EQ(nest_make(path, why), -ENOTDIR);
    CHECK_EQ(nest_make(in(&p, "link/inner", path), why), -ENOTDIR);
    CHECK(strstr(why, "link") != NULL);
    place_free(&p);
}

/* Who may replace a folder on the way to ours may replace ours. */
static void test_groups(void) {
    struct place p = place_new();
    char path[PLACE_MAX], why[NEST_WHY_MAX] = "";
    CHECK_EQ(mkdir(in(&p, "shared", path), 0700), 0);
    CHECK_EQ(chown(path, (uid_t)-1, getegid()), 0);
    CHECK_EQ(chmod(path, 0770), 0);
    CHECK_EQ(nest_make(in(&p, "shared/inner", path), why), 0); /* the group is ours */
    if (geteuid() == 0) {
        CHECK_EQ(chown(in(&p, "shared", path), 0, 65534), 0);
        CHECK_EQ(nest_make(in(&p, "shared/inner", path), why), -EACCES);
        CHECK(strstr(why, "others can replace") != NULL);
        CHECK_EQ(chmod(in(&p, "shared", path), 01770), 0);
        CHECK_EQ(nest_make(in(&p, "shared/inner", path), why), 0);
    }
    place_free(&p);
}

static void test_look(void) {
    struct place p = place_new();
    char path[PLACE_MAX], why[NEST_WHY_MAX] = "";
    struct stat s;
    CHECK_EQ(nest_look(in(&p, "a/b", path), why), -ENOENT);
    CHECK(stat(in(&p, "a", path), &s) < 0);
    CHECK_EQ(nest_make(in(&p, "a/b", path), why), 0);
    CHECK_EQ(nest_look(path, why), 0);
    CHECK_EQ(chmod(path, 0755), 0);
    CHECK_EQ(nest_look(path, why), -EACCES);
    place_free(&p);
}

static void test_somebody_elses(void) {
    struct place p = place_new();
    char path[PLACE_MAX], why[NEST_WHY_MAX];
    if (geteuid() != 0) {
        place_free(&p);
        return; /* only root can give one away */
    }
    CHECK_EQ(mkdir(in(&p, "theirs", path), 0700), 0);
    CHECK_EQ(chown(path, 65534, 65534), 0);
    CHECK_EQ(nest_make(path, why), -EPERM);
    CHECK(strstr(why, "somebody else's") != NULL);
    CHECK_EQ(nest_make(in(&p, "theirs/ours", path), why), -EPERM);
    place_free(&p);
}

int main(void) {
    TEST(test_make);
    TEST(test_leave_stops_at_others);
    TEST(test_refused);
    TEST(test_groups);
    TEST(test_look);
    TEST(test_somebody_elses);
    return tap_finish();
}
