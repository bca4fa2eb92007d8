/* SPDX-License-Identifier: MIT */
/* Tests of hosts as a user names them: lists, files, what is left out, and what is complained of. */
#include "cli/roll.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/complain.h"
#include "tap.h"

static char folder[] = "/tmp/storm-roll-XXXXXX";
static char complaint[1024];

/* A file with that text; "@" and its path. */
static const char *file(const char *text) {
    static char item[128];
    snprintf(item, sizeof item, "@%s/hosts", folder);
    FILE *f = fopen(item + 1, "we");
    fputs(text, f);
    fclose(f);
    return item;
}

/* roll_read, with what goes to stderr in `complaint`. */
static int read_roll(struct roll *r, const char *hosts, const char *except) {
    char path[128];
    snprintf(path, sizeof path, "%s/stderr", folder);
    int before = dup(2), fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(fd, 2);
    int status = roll_read(r, "exec", hosts, except);
    dup2(before, 2);
    close(before);
    ssize_t n = pread(fd, complaint, sizeof complaint - 1, 0);
    complaint[n > 0 ? n : 0] = '\0';
    close(fd);
    return status;
}

/* The names, a space before each, and a switch's name behind those that have one. */
static const char *names(const char *hosts, const char *except) {
    static char text[1024];
    struct roll r;
    size_t len = 0;
    text[0] = '\0';
    CHECK_EQ(read_roll(&r, hosts, except), 0);
    CHECK_STR(complaint, "");
    for (uint32_t i = 0; i < r.count; i++) {
        bool known = r.crates[i] != 0;
        CHECK(r.crates[i] <= r.switch_count);
        len += (size_t)snprintf(text + len, sizeof text - len, " %s%s%s", r.names[i],
                                known ? "/" : "", known ? r.switches[r.crates[i] - 1] : "");
    }
    roll_free(&r);
    return text;
}

static bool refused(const char *hosts, const char *except, const char *words) {
    struct roll r;
    bool right = CHECK_EQ(read_roll(&r, hosts, except), STATUS_USAGE);
    right = CHECK(strncmp(complaint, "storm: ", 7) == 0) && right;
    right = CHECK(strchr(complaint, '\n') == complaint + strlen(complaint) - 1) && right;
    if (!CHECK(strstr(complaint, words) != NULL)) {
        printf("# expected: %s; it said: %s", words, complaint);
        right = false;
    }
    roll_free(&r);
    return right;
}

static void test_lists(void) {
    CHECK_STR(names("a", NULL), " a");
    CHECK_STR(names("h[0-2],gate,r[1-2]n[08-09]", NULL), " h0 h1 h2 gate r1n08 r1n09 r2n08 r2n09");
    CHECK_STR(names("n[1,3],me@far.example.org", NULL), " n1 n3 me@far.example.org");
}

/* The first of two stays where it is. */
static void test_twice(void) {
    CHECK_STR(names("b,a,b,h[0-1],h[1-2],a", NULL), " b a h0 h1 h2");
}

static void test_except(void) {
    CHECK_STR(names("h[0-5],gate", "h[1-4]"), " h0 h5 gate");
    CHECK_STR(names("h[0-2]", "x,h1,y"), " h0 h2");
    CHECK_STR(names("h[0-2]", file("h2 # broken\nh0\n")), " h1");
}

static void test_files(void) {
    CHECK_STR(names(file("# all of them\n\nh[0-1]\n  gate  # of the house\r\n\tlast"), NULL),
              " h0 h1 gate last");
    CHECK_STR(names(file("a switch=one\nb\nc[1-2]\tswitch=two\nd switch=one # again\n"), NULL),
              " a/one b c1/two c2/two d/one");
    /* Among others. */
    char list[256];
    snprintf(list, sizeof list, "x[1,2],%s,y", file("a\n"));
    CHECK_STR(names(list, NULL), " x1 x2 a y");
}

static void test_many(void) {
    struct roll r;
    CHECK_EQ(read_roll(&r, "h[0-99999],h[0-99999]", "h[1-99998]"), 0);
    CHECK_EQ(r.count, 2);
    CHECK_STR(r.names[1], "h99999");
    roll_free(&r);
}

static void test_refused(void) {
    char list[256];
    refused("h[0-", NULL, "exec: ");
    refused("h[0-", NULL, "\"h[0-\"");
    refused("a,-oProxyCommand=x", NULL, "character 1 of \"-oProxyCommand=x\"");
    refused("", NULL, "names no host");
    refused(",", NULL, "names no host");
    refused("h[0-3]", "h[0-9]", "no host that is left");
    refused("a", "b[", "\"b[\"");
    refused("@/no/such/file", NULL, "/no/such/file cannot be read: No such file");
    snprintf(list, sizeof list, "@%s", folder);
    refused(list, NULL, "cannot be read: Is a directory");
}

static void test_refused_in_files(void) {
    refused(file("a\nb[\n"), NULL, "hosts:2: ");
    refused(file("a\n\nb c\n"), NULL, "hosts:3: \"c\" is not understood");
    refused(file("a switch=\n"), NULL, "hosts:1: \"switch=\" is not understood");
    refused(file("a switch=one more\n"), NULL, "hosts:1: there is more than");
    refused(file("# nobody\n"), NULL, "names no host");
}

static void test_fold(void) {
    struct roll r;
    const uint32_t which[] = {0, 1, 3, 4};
    CHECK_EQ(read_roll(&r, "h[0-3],gate", NULL), 0);
    char *text = roll_fold(&r, which, 4);
    CHECK_STR(text, "h[0-1,3],gate");
    free(text);
    text = roll_fold(&r, which, 0);
    CHECK_STR(text, "");
    free(text);
    roll_free(&r);
}

int main(void) {
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(test_lists);
    TEST(test_twice);
    TEST(test_except);
    TEST(test_files);
    TEST(test_many);
    TEST(test_refused);
    TEST(test_refused_in_files);
    TEST(test_fold);
    char path[128];
    snprintf(path, sizeof path, "%s/hosts", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/stderr", folder);
    unlink(path);
    rmdir(folder);
    return tap_finish();
}
