/* SPDX-License-Identifier: MIT */
/*
 * The loader of this machine and we find the same libraries: for programs that are installed, and for
 * many that are made at random, with all that a search can meet. The loader is asked by its --list.
 */
#include <dirent.h>
#include <limits.h>

#include "base/random.h"
#include "base/rtld.h"
#include "client/closure.h"
#include "workshop.h"

enum { LIST_BYTES = 65536, ROUNDS = 120, INSTALLED = 60 };

static struct workshop shop;

/* ---- what the loader says ---- */

struct listing {
    char text[LIST_BYTES];
    bool failed; /* something is not there, or no library */
};

/* Lines are "\tNAME => PATH (ADDRESS)" or "\tPATH (ADDRESS)": the paths, one a line. */
static void keep_paths(struct listing *l, const char *said) {
    size_t len = 0;
    char line[1024];
    for (const char *at = said; *at != '\0';) {
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, at + strspn(at, "\t"));
        at += n + (at[n] != '\0');
        char *arrow = strstr(line, " => "), *path = arrow == NULL ? line : arrow + 4;
        path[strcspn(path, " \n")] = '\0';
        if (strchr(path, '/') == NULL && arrow == NULL)
            continue; /* what the kernel brings along */
        if (strcmp(path, shop.loader) == 0)
            continue;
        len += (size_t)snprintf(l->text + len, sizeof l->text - len, "%s%s%s\n",
                                *path == '/' ? "" : shop.folder, *path == '/' ? "" : "/", path);
    }
}

static void ask_loader(struct listing *l, const char *program, const char *library_path) {
    static char said[LIST_BYTES];
    char setting[1024];
    const char *const argv[] = {shop.loader, "--list", program, NULL};
    snprintf(setting, sizeof setting, "LD_LIBRARY_PATH=%s", library_path);
    const char **environment = errand_environment("LD_", setting);
    struct errand e = {.argv = argv,
                       .environment = environment,
                       .output = said,
                       .output_cap = sizeof said,
                       .silent = true};
    l->text[0] = '\0';
    int r = errand_run(&e);
    free(environment);
    l->failed = r < 0 || e.status != 0 || strstr(said, "=> not found") != NULL;
    if (!l->failed)
        keep_paths(l, said);
}

/* ---- what we say ---- */

static bool seen_before(const struct closure *c, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(closure_at(c, k)->path, closure_at(c, i)->path) == 0)
            return true;
    return false;
}

static void ask_closure(struct listing *l, const char *program, const char *library_path) {
    struct closure *c;
    char why[CLOSURE_WHY_MAX];
    size_t len = 0;
    int r = closure_new(program, library_path, NULL, &c, why);
    *l = (struct listing){.failed = r < 0};
    if (r < 0) {
        CHECK_EQ(r, -ENOENT);
        return;
    }
    for (uint32_t i = 0; i < closure_count(c); i++)
        if (!seen_before(c, i))
            len += (size_t)snprintf(l->text + len, sizeof l->text - len, "%s\n",
                                    closure_at(c, i)->path);
    closure_free(c);
}

/* Whether there was something to compare. */
static bool compare(const char *program, const char *library_path) {
    static struct listing theirs, ours;
    ask_loader(&theirs, program, library_path);
    ask_closure(&ours, program, library_path);
    bool same = CHECK_EQ(ours.failed, theirs.failed);
    if (same && !theirs.failed)
        same = CHECK_STR(ours.text, theirs.text);
    if (!same)
        printf("# %s with LD_LIBRARY_PATH=%s\n", program, library_path);
    return !theirs.failed;
}

/* ---- programs that are installed ---- */

static bool is_dynamic(const char *path) {
    char name[256];
    struct elf e;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = elf_read(&e, (struct elf_source){workshop_pread, &fd});
    bool ours =
        r == 0 && elf_interpreter(&e, name, sizeof name) == 0 && strcmp(name, shop.loader) == 0;
    if (fd >= 0)
        close(fd);
    return ours;
}

/* Every so many of them, so that all letters are heard. */
static void test_installed(void) {
    struct dirent **entries;
    int count = scandir("/usr/bin", &entries, NULL, alphasort), compared = 0;
    if (!CHECK(count > 0))
        return;
    int step = count / INSTALLED + 1;
    for (int i = 0; i < count; i++) {
        char name[512], path[PATH_MAX];
        snprintf(name, sizeof name, "/usr/bin/%s", entries[i]->d_name);
        free(entries[i]);
        /* The kernel follows links to a program, the loader that is told its name does not. */
        if (i % step == 0 && realpath(name, path) != NULL && is_dynamic(path))
            compared += compare(path, "");
    }
    free(entries);
    printf("# %d programs\n", compared);
    CHECK(compared >= 5);
}

/* ---- programs that are made ---- */

enum { LIBRARIES = 7, FOLDERS = 5, TEXT = 512 };

static const char *pick(struct random *r, const char *const *from, size_t count) {
    return from[random_below(r, count)];
}

/* A list of folders as it may stand in a file or in the environment; all are f0 to f4, spelt in many ways, or
 * not there. */
static const char *draw_list(struct random *r, char out[TEXT]) {
    static const char *const before[] = {"%", "%",      "$ORIGIN/..", "${ORIGIN}/../bin/..",
                                         "",  "%/f0/.."};
    size_t len = 0;
    out[0] = '\0';
    for (uint64_t n = random_below(r, 4); n > 0; n--) {
        const char *start = pick(r, before, sizeof before / sizeof *before);
        uint64_t number = random_below(r, FOLDERS + 2);
        const char *top = *start == '%' ? shop.folder : "";
        const char *slash = *start == '\0' ? "" : "/";
        char name[16];
        snprintf(name, sizeof name, "f%u", (unsigned)number);
        len += (size_t)snprintf(out + len, TEXT - len, "%s%s%s%s%s", len == 0 ? "" : ":", top,
                                start + (*start == '%'), slash, number == FOLDERS ? "$LIB" : name);
    }
    return out;
}

static void draw_object(struct random *r, struct elfmaker *m, char texts[3][TEXT]) {
    static const char *const names[LIBRARIES + 3] = {
        "libv0.so", "libv1.so", "libv2.so",  "libv3.so",  "libv4.so",
        "libv5.so", "libv6.so", "libm.so.6", "libc.so.6", "$ORIGIN/../f1/libv0.so"};
    uint64_t needs = random_below(r, 4);
    for (uint64_t i = 0; i < needs; i++)
        m->needs[i] = pick(r, names, sizeof names / sizeof *names);
    if (random_chance(r, 1, 3))
        m->rpath = draw_list(r, texts[0]);
    if (random_chance(r, 1, 4))
        m->runpath = draw_list(r, texts[1]);
    if (random_chance(r, 1, 12))
        m->flags_1 = 0x800;
    if (random_chance(r, 1, 10))
        m->machine = 2;
    if (random_chance(r, 2, 3))
        m->soname = pick(r, names, LIBRARIES);
}

/* One of the places of a library: a file, mostly with a name of its own, or a link to another library's. */
static void draw_file(struct random *r, const char *folder, unsigned library) {
    char path[2 * TEXT], target[TEXT], texts[3][TEXT];
    struct elfmaker m = {0};
    snprintf(path, sizeof path, "%s/libv%u.so", folder, library);
    if (random_chance(r, 1, 10)) {
        snprintf(target, sizeof target, "%s/f%u/libv%u.so", shop.folder,
                 (unsigned)random_below(r, FOLDERS), (library + 1) % LIBRARIES);
        workshop_link(&shop, path, target);
        return;
    }
    draw_object(r, &m, texts);
    snprintf(texts[2], TEXT, "libv%u.so", library);
    if (random_chance(r, 3, 4))
        m.soname = texts[2];
    workshop_make(&shop, path, &m);
}

static bool round_of(uint64_t seed, const char *lib) {
    struct random r;
    char texts[3][TEXT], list[TEXT];
    struct elfmaker m = {.interpreter = shop.loader};
    const char *const clean[] = {"rm", "-rf", "f0", "f1", "f2", "f3", "f4", "lib", "bin", NULL};
    random_init(&r, seed);
    CHECK_EQ(workshop_do(clean), 0);
    for (unsigned i = 0; i < LIBRARIES; i++)
        for (unsigned folder = 0; folder <= FOLDERS; folder++) {
            char name[TEXT];
            snprintf(name, sizeof name, "f%u", folder);
            if (random_chance(&r, 2, 5))
                draw_file(&r, folder == FOLDERS ? lib : name, i);
        }
    draw_object(&r, &m, texts);
    m.machine = 0;
    workshop_make(&shop, "bin/prog", &m);
    return compare(workshop_path(&shop, "bin/prog"), draw_list(&r, list));
}

static void test_made(void) {
    static uint8_t data[4 << 20];
    struct rtld rtld;
    int fd = open(shop.loader, O_RDONLY | O_CLOEXEC), compared = 0;
    ssize_t len = read(fd, data, sizeof data);
    close(fd);
    if (!CHECK(len > 0) || !CHECK_EQ(rtld_read(&rtld, bytes_of(data, (size_t)len)), 0))
        return;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        compared += round_of(seed, rtld.lib);
    printf("# %d of %d are complete\n", compared, ROUNDS);
    CHECK(compared >= ROUNDS / 5);
}

/* Relative folders are below the workshop's. */
int main(void) {
    if (!workshop_open(&shop) || chdir(shop.folder) < 0)
        return 1;
    TEST(test_installed);
    TEST(test_made);
    workshop_close(&shop);
    return tap_finish();
}
