/* SPDX-License-Identifier: MIT */
/* Where the folder of a run is on a node: see folder.h. */
#include "wire/folder.h"

#include <string.h>

#include "base/text.h"
#include "wire/message.h"

static void write_name(struct text *t, uint64_t run) {
    text_u64(t, run_job(run));
    text_char(t, '.');
    text_u64(t, run & UINT16_MAX);
}

void run_folder_name(uint64_t run, char out[RUN_FOLDER_MAX]) {
    struct text t;
    text_init(&t, out, RUN_FOLDER_MAX);
    write_name(&t, run);
}

void run_folder_path(uint64_t run, char out[RUN_FOLDER_MAX]) {
    struct text t;
    text_init(&t, out, RUN_FOLDER_MAX);
    text_str(&t, "/" RUN_FOLDERS "/");
    write_name(&t, run);
}

/* Only what we would have written ourselves: one folder has one name. */
uint64_t run_folder_read(const char *name) {
    uint64_t job = 0, attempt = 0;
    char again[RUN_FOLDER_MAX];
    int digits = text_scan_u64(name, &job);
    if (digits <= 0 || name[digits] != '.' || text_scan_u64(name + digits + 1, &attempt) <= 0 ||
        job > UINT32_MAX || attempt > UINT16_MAX)
        return 0;
    uint64_t run = run_of((uint32_t)job, (uint16_t)attempt);
    run_folder_name(run, again);
    return strcmp(again, name) == 0 ? run : 0;
}

uint64_t run_folder_of(struct bytes path) {
    static const char top[] = "/" RUN_FOLDERS "/";
    size_t skip = sizeof top - 1, len = 0;
    char name[RUN_FOLDER_MAX];
    if (path.len < skip || memcmp(path.at, top, skip) != 0)
        return 0;
    while (skip + len < path.len && path.at[skip + len] != '/')
        len++;
    if (len >= sizeof name)
        return 0;
    memcpy(name, path.at + skip, len);
    name[len] = '\0';
    return run_folder_read(name);
}
