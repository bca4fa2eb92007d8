/* SPDX-License-Identifier: MIT */
/* Tests of the libraries of a program: one rule of ld.so(8) after the other, with libraries made for it. */
#include "client/closure.h"

#include "workshop.h"

static struct workshop shop;

/* A program of the workshop. */
static void program(const char *path, struct elfmaker m) {
    m.interpreter = shop.loader;
    workshop_make(&shop, path, &m);
}

static void library(const char *path, struct elfmaker m) {
    workshop_make(&shop, path, &m);
}

/* Checks the paths, in the workshop, of all libraries of a program, in their order, with blanks between. */
static void check_paths(const char *path, const char *library_path, const char *preload,
                        const char *expected) {
    struct closure *c;
    char why[CLOSURE_WHY_MAX] = "", all[1024] = "";
    if (!CHECK_EQ(closure_new(workshop_path(&shop, path), library_path, preload, &c, why), 0)) {
        printf("# %s\n", why);
        return;
    }
    for (uint32_t i = 0; i < closure_count(c); i++) {
        const char *at = closure_at(c, i)->path;
        size_t len = strlen(shop.folder);
        bool ours = strncmp(at, shop.folder, len) == 0;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i == 0 ? "" : " ",
                 ours ? at + len + 1 : at);
    }
    CHECK(closure_at(c, closure_count(c)) == NULL);
    CHECK_STR(all, expected);
    closure_free(c);
}

static void check_fails(const char *path, const char *library_path, int error, const char *words) {
    struct closure *c;
    char why[CLOSURE_WHY_MAX] = "";
    CHECK_EQ(closure_new(workshop_path(&shop, path), library_path, NULL, &c, why), error);
    if (!CHECK(strstr(why, words) != NULL))
        printf("# %s\n", why);
}

static char *search_list(const char *format) {
    char *out;
    CHECK(asprintf(&out, format, shop.folder, shop.folder, shop.folder) > 0);
    return out;
}

static void test_breadth_first(void) {
    char *rpath = search_list("%s/b1");
    library("b1/liba.so", (struct elfmaker){.soname = "liba.so", .needs = {"libc1.so"}});
    library("b1/libb.so", (struct elfmaker){.soname = "libb.so", .needs = {"libc2.so"}});
    library("b1/libc1.so", (struct elfmaker){.needs = {"libb.so"}});
    library("b1/libc2.so", (struct elfmaker){.needs = {"liba.so"}});
    program("b1/prog", (struct elfmaker){.rpath = rpath, .needs = {"liba.so", "libb.so"}});
    check_paths("b1/prog", NULL, NULL, "b1/liba.so b1/libb.so b1/libc1.so b1/libc2.so");
    free(rpath);
}

/* An RPATH holds for the libraries of libraries, a RUNPATH only for one's own. */
static void test_inherited(void) {
    char *folder = search_list("%s/in");
    library("in/liba.so", (struct elfmaker){.needs = {"libb.so"}});
    library("in/libb.so", (struct elfmaker){.soname = "libb.so"});
    program("in/rpath", (struct elfmaker){.rpath = folder, .needs = {"liba.so"}});
    program("in/runpath", (struct elfmaker){.runpath = folder, .needs = {"liba.so"}});
    check_paths("in/rpath", NULL, NULL, "in/liba.so in/libb.so");
    check_fails("in/runpath", NULL, -ENOENT, "libb.so, needed by liba.so, is not found");
    library("in/liba.so", (struct elfmaker){.runpath = "/nowhere", .needs = {"libb.so"}});
    check_fails("in/rpath", NULL, -ENOENT, "libb.so, needed by liba.so, is not found");
    free(folder);
}

/* RPATH, then LD_LIBRARY_PATH, then RUNPATH. */
static void test_order(void) {
    char *mine = search_list("%s/o1"), *theirs = search_list("/nowhere:%s/o2;%s/o3");
    for (int i = 1; i <= 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "o%d/libx.so", i);
        library(path, (struct elfmaker){.soname = "libx.so"});
    }
    program("rpath", (struct elfmaker){.rpath = mine, .needs = {"libx.so"}});
    program("runpath", (struct elfmaker){.runpath = mine, .needs = {"libx.so"}});
    program("both", (struct elfmaker){.rpath = mine, .runpath = "/nowhere", .needs = {"libx.so"}});
    check_paths("rpath", theirs, NULL, "o1/libx.so");
    check_paths("runpath", theirs, NULL, "o2/libx.so");
    check_paths("runpath", NULL, NULL, "o1/libx.so");
    check_paths("both", theirs, NULL, "o2/libx.so");
    check_fails("both", NULL, -ENOENT, "libx.so, needed by both, is not found; ");
    free(mine);
    free(theirs);
}

static void test_words(void) {
    library("w/lib/libx.so", (struct elfmaker){.rpath = "${ORIGIN}/more", .needs = {"liby.so"}});
    library("w/lib/more/liby.so", (struct elfmaker){.soname = "liby.so"});
    program("w/bin/prog", (struct elfmaker){.runpath = "$ORIGIN/../lib", .needs = {"libx.so"}});
    check_paths("w/bin/prog", NULL, NULL, "w/bin/../lib/libx.so w/bin/../lib/more/liby.so");
    workshop_link(&shop, "w/link", "bin/prog"); /* the file counts, not where the link is */
    check_paths("w/link", NULL, NULL, "w/bin/../lib/libx.so w/bin/../lib/more/liby.so");
    program("w/bin/path", (struct elfmaker){.needs = {"$ORIGIN/../lib/more/liby.so"}});
    check_paths("w/bin/path", NULL, NULL, "w/bin/../lib/more/liby.so");
}

static void test_other_machine(void) {
    char *list = search_list("%s/m1:%s/m2");
    library("m1/libx.so", (struct elfmaker){.machine = 2});
    library("m2/libx.so", (struct elfmaker){.soname = "libx.so"});
    program("m", (struct elfmaker){.needs = {"libx.so"}});
    check_paths("m", list, NULL, "m2/libx.so");
    workshop_write(&shop, "m1/libx.so", "/* GNU ld script */", 19);
    check_fails("m", list, -EBADMSG, "libx.so, needed by m: it is no ELF file");
    free(list);
}

/* Loaded once: by its own name, and as the same file under another. */
static void test_known(void) {
    char *list = search_list("%s/k");
    struct closure *c;
    char why[CLOSURE_WHY_MAX];
    library("k/libx-real.so", (struct elfmaker){.soname = "libx.so.1"});
    workshop_link(&shop, "k/libx.so", "libx-real.so");
    workshop_link(&shop, "k/libother.so", "libx-real.so");
    program("k/prog", (struct elfmaker){.rpath = "$ORIGIN",
                                        .needs = {"libx.so", "libx.so.1", "libother.so"}});
    if (CHECK_EQ(closure_new(workshop_path(&shop, "k/prog"), NULL, NULL, &c, why), 0)) {
        CHECK_EQ(closure_count(c), 2);
        CHECK_STR(closure_at(c, 0)->name, "libx.so");
        CHECK_STR(closure_at(c, 1)->name, "libother.so");
        CHECK_STR(closure_at(c, 0)->path, closure_at(c, 1)->path);
        closure_free(c);
    }
    free(list);
}

static void test_places(void) {
    static const char *const places[] = {"libx.so", "liby.so", NULL};
    struct closure *c;
    char why[CLOSURE_WHY_MAX];
    library("p/libx.so", (struct elfmaker){.rpath = "/nowhere"});
    library("p/liby.so", (struct elfmaker){.runpath = "/nowhere"});
    library("p/q/libz.so", (struct elfmaker){.rpath = ""});
    program("p/prog",
            (struct elfmaker){.runpath = "$ORIGIN",
                              .needs = {"libx.so", "$ORIGIN/liby.so", "$ORIGIN/q/libz.so"}});
    if (!CHECK_EQ(closure_new(workshop_path(&shop, "p/prog"), NULL, NULL, &c, why), 0))
        return;
    for (uint32_t i = 0; i < 3; i++)
        CHECK_STR(closure_at(c, i)->place, places[i]);
    uint8_t stubborn[16];
    CHECK_EQ(closure_stubborn(c, room_of(stubborn, sizeof stubborn)), 8);
    CHECK_STR((const char *)stubborn, "libx.so");
    CHECK_EQ(closure_stubborn(c, room_of(stubborn, 7)), -ENOBUFS);
    CHECK_STR(closure_interpreter(c), shop.loader);
    closure_free(c);
}

static void test_preload(void) {
    char *list = search_list("/nowhere/libp.so libq.so:%s/l/libr.so");
    char *folder = search_list("%s/l");
    library("l/libq.so", (struct elfmaker){.needs = {"libx.so"}});
    library("l/libr.so", (struct elfmaker){.soname = "libr.so"});
    library("l/libx.so", (struct elfmaker){.soname = "libx.so"});
    library("l/liby.so", (struct elfmaker){.soname = "liby.so"});
    program("l/prog", (struct elfmaker){.needs = {"liby.so", "libr.so"}});
    check_paths("l/prog", folder, list, "l/libq.so l/libr.so l/liby.so l/libx.so");
    check_paths("l/prog", folder, "libnone.so", "l/liby.so l/libr.so");
    free(list);
    free(folder);
}

static void test_auxiliary(void) {
    library("x/liba.so", (struct elfmaker){.auxiliary = "libnone.so"});
    library("x/libb.so", (struct elfmaker){.auxiliary = "libthere.so"});
    library("x/libthere.so", (struct elfmaker){.soname = "libthere.so"});
    program("x/prog", (struct elfmaker){.rpath = "$ORIGIN", .needs = {"liba.so", "libb.so"}});
    check_paths("x/prog", NULL, NULL, "x/liba.so x/libb.so x/libthere.so");
}

static void test_no_default(void) {
    enum { NO_DEFAULT = 0x800 };
    program("nd", (struct elfmaker){.flags_1 = NO_DEFAULT, .needs = {"libc.so.6"}});
    check_fails("nd", NULL, -ENOENT, "libc.so.6, needed by nd, is not found");
}

/* By themselves they are programs that no loader touches. */
static void test_static(void) {
    struct closure *c;
    char why[CLOSURE_WHY_MAX];
    workshop_make(&shop, "static", &(struct elfmaker){.type = ELF_TYPE_EXEC});
    if (CHECK_EQ(closure_new(workshop_path(&shop, "static"), NULL, NULL, &c, why), 0)) {
        CHECK_EQ(closure_count(c), 0);
        CHECK(closure_interpreter(c) == NULL);
        closure_free(c);
    }
    closure_free(NULL);
}

static void test_no_programs(void) {
    workshop_write(&shop, "script", "#! /bin/sh -e\n", 14);
    check_fails("script", NULL, -ENOEXEC,
                "it is a script; the program is its interpreter, /bin/sh");
    workshop_write(&shop, "text", "hello", 5);
    check_fails("text", NULL, -EBADMSG, "it is no ELF file");
    workshop_write(&shop, "empty", "", 0);
    check_fails("empty", NULL, -EBADMSG, "it is no ELF file");
    workshop_write(&shop, "cut", "\177ELF\2\1\1---------", 16);
    check_fails("cut", NULL, -EBADMSG, "it is damaged");
    workshop_make(&shop, "core", &(struct elfmaker){.type = 4});
    check_fails("core", NULL, -EBADMSG, "neither a program nor a shared library");
    check_fails("none", NULL, -ENOENT, "No such file");
    check_fails(".", NULL, -EBADMSG, "it is not a file");
}

static void test_loaders(void) {
    workshop_make(&shop, "l1", &(struct elfmaker){.interpreter = "/nowhere/ld.so"});
    check_fails("l1", NULL, -ENOENT, "its loader /nowhere/ld.so: it is not found");
    workshop_make(&shop, "l2", &(struct elfmaker){.interpreter = workshop_path(&shop, "static")});
    check_fails("l2", NULL, -EOPNOTSUPP, "is not one of glibc");
    program("l3", (struct elfmaker){.needs = {shop.loader}}); /* it is loaded, whatever it does */
    check_paths("l3", NULL, NULL, "");
}

/* One more than the largest closure. */
static void test_limit(void) {
    char path[64], next[64];
    for (int i = 0; i <= CLOSURE_LIBRARIES_MAX; i++) {
        snprintf(path, sizeof path, "many/lib%d.so", i);
        snprintf(next, sizeof next, "lib%d.so", i + 1);
        library(path, (struct elfmaker){.needs = {next}});
    }
    program("many/prog", (struct elfmaker){.rpath = "$ORIGIN", .needs = {"lib0.so"}});
    check_fails("many/prog", NULL, -E2BIG, "too many libraries");
}

int main(void) {
    if (!workshop_open(&shop))
        return 1;
    TEST(test_breadth_first);
    TEST(test_inherited);
    TEST(test_order);
    TEST(test_words);
    TEST(test_other_machine);
    TEST(test_known);
    TEST(test_places);
    TEST(test_preload);
    TEST(test_auxiliary);
    TEST(test_no_default);
    TEST(test_static);
    TEST(test_no_programs);
    TEST(test_loaders);
    TEST(test_limit);
    workshop_close(&shop);
    return tap_finish();
}
