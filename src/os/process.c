/* SPDX-License-Identifier: MIT */
/* Processes as /proc shows them: see process.h. */
#include "os/process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"

static FILE *open_file(pid_t pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

uint64_t process_cpu_ns(pid_t pid) {
    uint64_t ns = 0;
    FILE *f = open_file(pid, "schedstat");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%" SCNu64, &ns) != 1)
        ns = 0;
    fclose(f);
    return ns;
}

uint64_t process_private_bytes(pid_t pid) {
    char line[256];
    uint64_t sum = 0, kib;
    FILE *f = open_file(pid, "smaps_rollup");
    if (f == NULL)
        return 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "Private_Clean: %" SCNu64, &kib) == 1 ||
            sscanf(line, "Private_Dirty: %" SCNu64, &kib) == 1)
            sum += kib * KIB;
    fclose(f);
    return sum;
}

uint32_t process_descriptors(pid_t pid) {
    char path[64];
    uint32_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return 0;
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}
