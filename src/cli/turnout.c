/* SPDX-License-Identifier: MIT */
/* What became of bringing up each host: see turnout.h. */
#include "cli/turnout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/hostsfile.h"
#include "os/files.h"

static const char *const names[TURNOUT_STATES] = {[TURNOUT_NONE] = "-",
                                                  [TURNOUT_TRYING] = "trying",
                                                  [TURNOUT_UP] = "up",
                                                  [TURNOUT_FAILED] = "failed",
                                                  [TURNOUT_ENDED] = "ended"};

int turnout_init(struct turnout *t, uint32_t capacity) {
    *t = (struct turnout){.capacity = capacity, .at = calloc(capacity + 1, sizeof *t->at)};
    return t->at == NULL ? -ENOMEM : 0;
}

void turnout_free(struct turnout *t) {
    free(t->at);
    t->at = NULL;
}

uint64_t turnout_version(const char *folder) {
    char path[CLUSTER_PATH_MAX];
    struct stat s;
    return hosts_path(folder, path, sizeof path) < 0 || stat(path, &s) < 0 ? 0 : files_mtime_ns(&s);
}

static enum turnout_state find_state(const char *word) {
    for (int i = TURNOUT_TRYING; i < TURNOUT_STATES; i++)
        if (strcmp(names[i], word) == 0)
            return (enum turnout_state)i;
    return TURNOUT_NONE;
}

static void read_line(struct turnout *t, const char *line) {
    uint32_t number;
    if (sscanf(line, "seen %" SCNu64, &t->seen) == 1)
        return;
    char state[16], name[ROSTER_NAME_MAX];
    int at = 0;
    _Static_assert(ROSTER_NAME_MAX == 128, "the width below");
    if (sscanf(line, "%" SCNu32 " %15s %127s %n", &number, state, name, &at) < 3 ||
        number >= t->capacity)
        return;
    struct turnout_host *h = &t->at[number];
    h->state = find_state(state);
    memcpy(h->name, name, sizeof name);
    snprintf(h->words, sizeof h->words, "%.*s", (int)strcspn(line + at, "\n"), line + at);
}

int turnout_read(struct turnout *t, const char *folder) {
    char path[CLUSTER_PATH_MAX + 16], line[512];
    snprintf(path, sizeof path, "%s/muster", folder);
    t->seen = 0;
    memset(t->at, 0, t->capacity * sizeof *t->at);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return errno == ENOENT ? 0 : -errno;
    while (fgets(line, sizeof line, f) != NULL)
        read_line(t, line);
    fclose(f);
    return 0;
}

int turnout_write(const struct turnout *t, const char *folder) {
    char path[CLUSTER_PATH_MAX + 16], *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL)
        return -ENOMEM;
    fprintf(f, "seen %" PRIu64 "\n", t->seen);
    for (uint32_t i = 0; i < t->capacity; i++)
        if (t->at[i].state != TURNOUT_NONE)
            fprintf(f, "%" PRIu32 " %s %s %s\n", i, names[t->at[i].state], t->at[i].name,
                    t->at[i].words);
    int r = fclose(f) == 0 ? 0 : -ENOMEM;
    snprintf(path, sizeof path, "%s/muster", folder);
    if (r == 0)
        r = files_replace(path, bytes_of(text, len));
    free(text);
    return r;
}
