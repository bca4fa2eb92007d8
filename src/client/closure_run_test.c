/* SPDX-License-Identifier: MIT */
/*
 * Programs that are started from a folder with copies of all their libraries (wire/outfit.h) use these
 * and none of this machine's, whatever they say about where theirs are; their children are not touched.
 */
#include "client/closure.h"

#include "wire/outfit.h"
#include "wire/spec.h"
#include "workshop.h"

enum { OUTPUT_BYTES = 65536, ARGUMENTS_MAX = 16 };

static struct workshop shop;

/* ---- the folder ---- */

static bool copy(const char *from, const char *to) {
    const char *const argv[] = {"cp", "-L", from, workshop_path(&shop, to), NULL};
    return CHECK_EQ(workshop_do(argv), 0);
}

static const char *base_name(const char *path) {
    return strrchr(path, '/') + 1;
}

static void fill_folder(const struct closure *c, const char *program) {
    char to[256], target[256];
    const char *const clean[] = {"rm", "-rf", workshop_path(&shop, "d"), NULL};
    CHECK_EQ(workshop_do(clean), 0);
    workshop_folders(&shop, "d/start/");
    snprintf(to, sizeof to, "d/%s", base_name(program));
    copy(program, to);
    snprintf(to, sizeof to, "d/%s", base_name(closure_interpreter(c)));
    copy(closure_interpreter(c), to);
    for (uint32_t i = 0; i < closure_count(c); i++)
        if (CHECK(closure_at(c, i)->place != NULL)) {
            snprintf(to, sizeof to, "d/%s", closure_at(c, i)->place);
            copy(closure_at(c, i)->path, to);
        }
    snprintf(to, sizeof to, "d/start/%s", base_name(program));
    snprintf(target, sizeof target, "../%s", base_name(closure_interpreter(c)));
    workshop_link(&shop, to, target);
}

/* ---- a run ---- */

static void run(const struct outfit *o, struct bytes arguments, char *output) {
    static char list[4096];
    char file[256];
    const char *argv[ARGUMENTS_MAX + 1] = {file};
    const char *const environment[] = {"LC_ALL=C", "PATH=/bin:/usr/bin", NULL};
    struct errand e = {
        .argv = argv, .environment = environment, .output = output, .output_cap = OUTPUT_BYTES};
    long n = outfit_arguments(o, arguments, "", room_of(list, sizeof list));
    output[0] = '\0';
    if (!CHECK_EQ(outfit_file(o, file, sizeof file), 0) || !CHECK(n > 0))
        return;
    size_t at = 0, count = 1;
    strings_next(bytes_of(list, (size_t)n), &at); /* errand takes the file's name for it */
    while (count < ARGUMENTS_MAX &&
           (argv[count] = strings_next(bytes_of(list, (size_t)n), &at)) != NULL)
        count++;
    CHECK_EQ(errand_run(&e), 0);
    CHECK_EQ(e.status, 0);
}

/* What is needed to start a program from the folder. */
struct kit {
    struct outfit outfit;
    char folder[256];
    uint8_t stubborn[256];
};

static bool prepare(struct kit *k, const char *program) {
    struct closure *c;
    char why[CLOSURE_WHY_MAX];
    if (!CHECK_EQ(closure_new(program, NULL, NULL, &c, why), 0)) {
        printf("# %s\n", why);
        return false;
    }
    fill_folder(c, program);
    snprintf(k->folder, sizeof k->folder, "%s/d", shop.folder);
    long n = closure_stubborn(c, room_of(k->stubborn, sizeof k->stubborn));
    k->outfit = (struct outfit){.folder = bytes_from_str(k->folder),
                                .program = bytes_from_str(base_name(program)),
                                .stubborn = bytes_of(k->stubborn, n < 0 ? 0 : (size_t)n),
                                .argv0 = closure_argv0(c)};
    closure_free(c);
    return CHECK(n >= 0);
}

/* How many of the files in a text like /proc/PID/maps are libraries in, and how many outside of, the folder. */
static void count_maps(const char *maps, int *ret_inside, int *ret_outside) {
    const char *folder = workshop_path(&shop, "d/");
    *ret_inside = *ret_outside = 0;
    for (const char *line = maps; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        const char *path = memchr(line, '/', len);
        const char *so = path == NULL ? NULL : memmem(path, len - (size_t)(path - line), ".so", 3);
        if (so != NULL && strncmp(path, folder, strlen(folder)) == 0)
            ++*ret_inside;
        else if (so != NULL)
            ++*ret_outside;
        line += len + (line[len] != '\0');
    }
}

/* ---- programs of this machine ---- */

static void test_installed(void) {
    static char output[OUTPUT_BYTES];
    static const char arguments[] = "cat\0/proc/self/maps\0/proc/self/comm";
    struct kit k;
    int inside, outside;
    if (!prepare(&k, "/bin/cat"))
        return;
    run(&k.outfit, bytes_of(arguments, sizeof arguments), output);
    count_maps(output, &inside, &outside);
    CHECK(inside >= 2 && outside == 0);
    CHECK(strstr(output, "\ncat\n") != NULL); /* the process is called as the program is */
}

/* ---- programs that are made ---- */

static const char source[] = "#include <stdio.h>\n"
                             "#include <stdlib.h>\n"
                             "const char *whose(void);\n"
                             "int main(int argc, char **argv) {\n"
                             "    char line[4096];\n"
                             "    FILE *f = fopen(\"/proc/self/maps\", \"r\");\n"
                             "    printf(\"%s %s\\n\", argv[0], whose());\n"
                             "    while (argc == 1 && fgets(line, sizeof line, f))\n"
                             "        fputs(line, stdout);\n"
                             "    fclose(f);\n"
                             "    fflush(stdout);\n"
                             "    return argc == 1 ? 0 : system(argv[1]);\n"
                             "}\n";

static bool compile(const char *to, const char *text, const char *const *options) {
    char file[64];
    const char *argv[ARGUMENTS_MAX] = {"cc", "-o", workshop_path(&shop, to)};
    snprintf(file, sizeof file, "%s.c", to);
    workshop_write(&shop, file, text, strlen(text));
    size_t n = 3;
    argv[n++] = workshop_path(&shop, file);
    for (size_t i = 0; options[i] != NULL; i++)
        argv[n++] = options[i];
    return CHECK_EQ(workshop_do(argv), 0);
}

/* libwhose asks libleaf whose it is. */
static bool make_libraries(const char *folder, const char *answer, const char *tags) {
    char text[128], leaf[128], whose[128], rpath[256];
    snprintf(text, sizeof text, "const char *leaf(void) { return \"%s\"; }\n", answer);
    snprintf(leaf, sizeof leaf, "%s/libleaf.so", folder);
    snprintf(whose, sizeof whose, "%s/libwhose.so", folder);
    snprintf(rpath, sizeof rpath, "-Wl,%s,-rpath,%s/node:%s/our", tags, shop.folder, shop.folder);
    const char *const first[] = {"-shared", "-fPIC", "-Wl,-soname,libleaf.so", NULL};
    const char *const second[] = {
        "-shared", "-fPIC", "-Wl,-soname,libwhose.so", rpath, workshop_path(&shop, leaf), NULL};
    return compile(leaf, text, first) &&
           compile(whose, "const char *leaf(void);\nconst char *whose(void) { return leaf(); }\n",
                   second);
}

static bool make_program(const char *tags, const char *pie) {
    char rpath[256];
    snprintf(rpath, sizeof rpath, "-Wl,%s,-rpath,%s/node:%s/our", tags, shop.folder, shop.folder);
    const char *const options[] = {workshop_path(&shop, "our/libwhose.so"),
                                   workshop_path(&shop, "our/libleaf.so"),
                                   "-Wl,--as-needed",
                                   rpath,
                                   pie,
                                   NULL};
    return compile("prog", source, options);
}

/* Where program and libraries look first, a node has other libraries with these names. */
static void check_whose(struct kit *k) {
    static char output[OUTPUT_BYTES];
    int inside, outside;
    const char *const plainly[] = {workshop_path(&shop, "prog"), NULL};
    struct errand e = {.argv = plainly, .output = output, .output_cap = sizeof output};
    workshop_link(&shop, "node", "other");
    CHECK_EQ(errand_run(&e), 0);
    CHECK(strstr(output, "/prog other\n") != NULL);
    run(&k->outfit, bytes_of("name", 5), output);
    count_maps(output, &inside, &outside);
    CHECK(inside >= 4 && outside == 0);
    if (!CHECK(strncmp(output, "name sent\n", 10) == 0))
        printf("# %.40s\n", output);
    CHECK_EQ(unlink(workshop_path(&shop, "node")), 0);
}

static void check_made(const char *program_tags, const char *library_tags, const char *pie) {
    struct kit k;
    if (make_libraries("our", "sent", library_tags) &&
        make_libraries("other", "other", library_tags) && make_program(program_tags, pie) &&
        prepare(&k, workshop_path(&shop, "prog")))
        check_whose(&k);
}

#define RPATH   "--disable-new-dtags"
#define RUNPATH "--enable-new-dtags"

static void test_runpath(void) {
    check_made(RUNPATH, RUNPATH, "-pie");
}

static void test_rpath(void) {
    check_made(RPATH, RUNPATH, "-pie");
}

static void test_rpath_of_library(void) {
    check_made(RUNPATH, RPATH, "-pie");
    check_made(RPATH, RPATH, "-no-pie");
}

static void test_not_relocatable(void) {
    check_made(RUNPATH, RUNPATH, "-no-pie");
}

static void test_children(void) {
    static char output[OUTPUT_BYTES];
    static const char arguments[] = "name\0cat /proc/self/maps; env";
    struct kit k;
    int inside, outside;
    if (!make_libraries("our", "sent", RUNPATH) || !make_program(RUNPATH, "-pie") ||
        !prepare(&k, workshop_path(&shop, "prog")))
        return;
    run(&k.outfit, bytes_of(arguments, sizeof arguments), output);
    count_maps(output, &inside, &outside);
    CHECK(inside == 0 && outside >= 2);
    CHECK(strstr(output, "\nLD_") == NULL);
}

int main(void) {
    const char *const version[] = {"cc", "--version", NULL};
    if (!workshop_open(&shop))
        return 1;
    TEST(test_installed);
    if (workshop_do(version) != 0) {
        SKIP("test_made", "there is no compiler");
    } else {
        TEST(test_runpath);
        TEST(test_rpath);
        TEST(test_rpath_of_library);
        TEST(test_not_relocatable);
        TEST(test_children);
    }
    workshop_close(&shop);
    return tap_finish();
}
