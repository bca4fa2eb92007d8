/* SPDX-License-Identifier: MIT */
/* Tests of finding a program. Complaints go to stderr, which tests may fill. */
#include "cli/program.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/complain.h"
#include "tap.h"

static char folder[] = "/tmp/storm-program-XXXXXX";

static void make(const char *name, const char *text, mode_t mode) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
    CHECK_EQ(chmod(path, mode), 0);
}

static void check(const char *name, const char *path, int status, const char *found) {
    char out[256] = "", want[256] = "";
    CHECK_EQ(program_find(name, name, folder, path, out, sizeof out), status);
    if (found != NULL) {
        snprintf(want, sizeof want, "%s%s", *found == '/' ? "" : folder, found);
        CHECK_STR(out, want);
    }
}

static void test_find(void) {
    char path[128], name[160];
    make("good", "#!/bin/sh\n", 0755);
    make("plain", "#!/bin/sh\n", 0644);
    make("bad", "#! /nowhere/sh -x\n", 0755);
    snprintf(path, sizeof path, "/nowhere:%s:/bin", folder);
    snprintf(name, sizeof name, "%s/good", folder);
    check(name, "", 0, name);
    check("./good", "", 0, NULL);
    check("good", path, 0, name);
    check("sh", path, 0, "/bin/sh");
    check("plain", path, STATUS_NOT_RUN, NULL);
    check("./plain", "", STATUS_NOT_RUN, NULL);
    check("./bad", "", STATUS_NOT_RUN, NULL);
    check("./none", "", STATUS_NOT_FOUND, NULL);
    check("./good/x", "", STATUS_NOT_FOUND, NULL);
    check("none", path, STATUS_NOT_FOUND, NULL);
    check("", path, STATUS_NOT_FOUND, NULL);
    check(folder, "", STATUS_NOT_RUN, NULL);
}

int main(void) {
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(test_find);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"good", "plain", "bad"};
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    return tap_finish();
}
