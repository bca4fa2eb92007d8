/* SPDX-License-Identifier: MIT */
/* Tests of options in scripts. Complaints go to stderr, which tests may fill. */
#include "cli/script.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/complain.h"
#include "tap.h"

struct values {
    const char *name, *procs;
    bool flag;
};

static int read_text(struct values *v, struct script *s, const char *text) {
    char path[] = "/tmp/storm-script-XXXXXX";
    const struct option table[] = {{"name", OPTION_TEXT, &v->name, "TEXT", "words"},
                                   {"procs,n", OPTION_TEXT, &v->procs, "N", "words"},
                                   {"wait", OPTION_FLAG, &v->flag, NULL, "words"},
                                   {0}};
    *v = (struct values){0};
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    int r = script_options(s, path, table);
    unlink(path);
    return r;
}

static void test_lines(void) {
    struct values v;
    struct script s;
    CHECK_EQ(read_text(&v, &s,
                       "#!/bin/sh\n# words\n#STORM -n 4  --name \"a job\"\n\n#STORMY --bogus\n"
                       "#STORM\t--wait\r\necho\n#STORM --bogus\n"),
             0);
    CHECK_STR(v.procs, "4");
    CHECK_STR(v.name, "a job");
    CHECK(v.flag);
    script_fini(&s);
    CHECK_EQ(read_text(&v, &s, "#!/bin/sh\n#STORM --name=x'y z'w"), 0); /* no newline */
    CHECK_STR(v.name, "xy zw");
    script_fini(&s);
}

static void test_wrong(void) {
    struct values v;
    struct script s;
    CHECK_EQ(read_text(&v, &s, "#!/bin/sh\n#STORM --bogus\n"), STATUS_USAGE);
    script_fini(&s);
    CHECK_EQ(read_text(&v, &s, "#!/bin/sh\n#STORM --wait words\n"), STATUS_USAGE);
    script_fini(&s);
    CHECK_EQ(read_text(&v, &s, "#!/bin/sh\n#STORM --name 'words\n"), STATUS_USAGE);
    script_fini(&s);
    CHECK_EQ(read_text(&v, &s, "no script\n#STORM --bogus\n"), 0);
    script_fini(&s);
    CHECK_EQ(script_options(&s, "/nowhere/at/all", NULL), 0);
    script_fini(&s);
}

int main(void) {
    TEST(test_lines);
    TEST(test_wrong);
    return tap_finish();
}
