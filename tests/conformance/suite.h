/* SPDX-License-Identifier: MIT */
/* Plays all scripts of a folder in some theatres and compares their histories with those kept.
 *
 *     conformance_test DIR [NAME...]                  plays all scripts of DIR, or these
 *     STORM_CONFORMANCE=write conformance_test DIR    keeps the histories
 *     STORM_SEEDS=500 conformance_test DIR            plays each so many times */
#pragma once

#include <dirent.h>

#include "tap.h"

#include "conformance/history.h"

/* What the running test is about; tests take no arguments. */
static char script_path[4096], history_path[4096];
static const struct theatre *theatre_of_test;
static uint64_t seed_count;

/* Shows where two texts part. */
static inline void show_difference(const char *kept, const char *told) {
    size_t line = 1, at = 0, begin = 0;
    for (; kept[at] == told[at] && kept[at] != '\0'; at++) {
        if (kept[at] == '\n') {
            line++;
            begin = at + 1;
        }
    }
    printf("#   line %zu, kept: %.*s\n", line, (int)strcspn(kept + begin, "\n"), kept + begin);
    printf("#   line %zu, told: %.*s\n", line, (int)strcspn(told + begin, "\n"), told + begin);
}

static inline void keep(const char *history) {
    FILE *f = fopen(history_path, "w");
    if (!CHECK(f != NULL))
        return;
    fputs(history, f);
    fclose(f);
}

static inline void play_once(const struct script *script, uint64_t seed) {
    struct director *d = calloc(1, sizeof *d);
    ASSERT(d != NULL);
    bool played = CHECK(director_play(d, script, theatre_of_test, seed));
    char *told = history_of(d);
    const char *mode = getenv("STORM_CONFORMANCE");
    if (played && seed == 1 && mode != NULL && strcmp(mode, "write") == 0)
        keep(told);
    char *kept = read_whole(history_path);
    bool same = CHECK(kept != NULL) && (!played || CHECK(strcmp(kept, told) == 0));
    if (!same && kept != NULL)
        show_difference(kept, told);
    if (!same || !played) {
        printf("#   play %" PRIu64 " of %" PRIu64 "\n", seed, seed_count);
        timeline_of(d);
    }
    director_free(d);
    free(d);
    free(kept);
    free(told);
}

static inline void play_script(void) {
    struct script *script = script_read(script_path);
    if (!CHECK(script != NULL))
        return;
    for (uint64_t seed = 1; seed <= seed_count && !tap_current_fail; seed++)
        play_once(script, seed);
    script_free(script);
}

static inline void test_script(const char *name, const struct theatre *theatre, uint64_t seeds) {
    theatre_of_test = theatre;
    seed_count = seeds;
    char title[512];
    snprintf(title, sizeof title, "%s, %s", name, theatre->name);
    tap_run(title, play_script);
}

/* ---- all scripts of a folder ---- */

static inline int is_script(const struct dirent *entry) {
    size_t len = strlen(entry->d_name);
    return len > 6 && strcmp(entry->d_name + len - 6, ".storm") == 0;
}

static inline bool is_wanted(const char *name, int count, char **names) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

static inline uint64_t seeds_wanted(uint64_t usual) {
    const char *text = getenv("STORM_SEEDS");
    uint64_t seeds = usual;
    return text != NULL && text_scan_u64(text, &seeds) > 0 ? seeds : usual;
}

/* Visits all plays. The arguments are those of main: a folder, then names of scripts. */
static inline bool suite_each(int argc, char **argv, const struct theatre *const *theatres,
                              uint32_t theatre_count, uint64_t seeds,
                              void (*visit)(const char *name, const struct theatre *theatre,
                                            uint64_t seeds)) {
    struct dirent **entries = NULL;
    int count = argc > 1 ? scandir(argv[1], &entries, is_script, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strlen(entries[i]->d_name) - 6,
                 entries[i]->d_name);
        free(entries[i]);
        snprintf(script_path, sizeof script_path, "%s/%s.storm", argv[1], name);
        snprintf(history_path, sizeof history_path, "%s/%s.history", argv[1], name);
        for (uint32_t k = 0; k < theatre_count && is_wanted(name, argc - 2, argv + 2); k++)
            visit(name, theatres[k], seeds_wanted(seeds));
    }
    free(entries);
    if (count <= 0)
        printf("Bail out! there are no scripts: name the folder that holds them\n");
    return count > 0;
}
