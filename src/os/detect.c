/* SPDX-License-Identifier: MIT */
/* What a machine is: see detect.h. */
#include "os/detect.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/units.h"
#include "os/files.h"
#include "os/loop.h"

enum { NUMBER_BYTES = 32, VERSION_PARTS = 4, VERSION_BITS = 16 };

enum { GPUS_MAX = 1024 };
#define SPEED_NS (5 * NS_PER_MS)

/* The number that a file of the system begins with; `otherwise` if there is none. */
static uint64_t number_in(const char *path, uint64_t otherwise) {
    char text[NUMBER_BYTES] = "", *end;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    long len = fd < 0 ? -1 : files_read(fd, room_of((uint8_t *)text, sizeof text - 1), 0);
    if (fd >= 0)
        close(fd);
    uint64_t value = strtoull(text, &end, 10);
    return len <= 0 || end == text || text[0] == '-' ? otherwise : value;
}

/* Entries of a folder whose names begin so, and of which `counts` (NULL: all) says that they count. */
static uint64_t count_in(const char *folder, const char *prefix, bool (*counts)(const char *path)) {
    uint64_t count = 0;
    char path[512];
    DIR *d = opendir(folder);
    if (d == NULL)
        return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        int len = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        count += len < (int)sizeof path && (counts == NULL || counts(path));
    }
    closedir(d);
    return count;
}

static uint64_t processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) /* beyond so many it does not fit */
        count = CPU_COUNT(&set);
    return count > 0 ? (uint64_t)count : TRAITS_UNKNOWN;
}

uint64_t detect_built_in(uint64_t bytes) {
    uint64_t power = 1;
    while (power <= bytes / 2)
        power *= 2;
    uint64_t step = power / 8 > 0 ? power / 8 : 1;
    return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

static uint64_t memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? detect_built_in((uint64_t)pages * (uint64_t)size)
                                 : TRAITS_UNKNOWN;
}

static uint64_t numa_nodes(void) {
    uint64_t count = count_in("/sys/devices/system/node", "node", NULL);
    return count > 0 ? count : 1;
}

/* A processor is a node without such units there. */
static bool is_amd_gpu(const char *path) {
    char name[600], line[128];
    bool found = false;
    snprintf(name, sizeof name, "%s/properties", path);
    FILE *f = fopen(name, "re");
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        found = strncmp(line, "simd_count ", 11) == 0 && strtoul(line + 11, NULL, 10) > 0;
    if (f != NULL)
        fclose(f);
    return found;
}

uint32_t detect_gpus(void) {
    const char *said = getenv("STORM_GPUS");
    if (said != NULL && *said >= '0' && *said <= '9')
        return (uint32_t)strtoul(said, NULL, 10) % GPUS_MAX;
    uint64_t seen = count_in("/proc/driver/nvidia/gpus", "", NULL) +
                    count_in("/sys/class/kfd/kfd/topology/nodes", "", is_amd_gpu);
    return (uint32_t)(seen % GPUS_MAX);
}

/* Of the fastest interface that says how fast it is, in bits per second. */
static uint64_t network(void) {
    uint64_t most = 0;
    char path[512];
    DIR *d = opendir("/sys/class/net");
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, "lo") == 0)
            continue;
        snprintf(path, sizeof path, "/sys/class/net/%s/speed", e->d_name);
        uint64_t mbit = number_in(path, 0);
        most = mbit > most && mbit < UINT32_MAX ? mbit : most;
    }
    if (d != NULL)
        closedir(d);
    return most > 0 ? most * 1000 * 1000 : TRAITS_UNKNOWN;
}

uint64_t detect_version(const char *release) {
    uint64_t version = 0;
    int shift = VERSION_PARTS * VERSION_BITS;
    if (*release < '0' || *release > '9')
        return TRAITS_UNKNOWN;
    while (shift > 0 && *release >= '0' && *release <= '9') {
        char *end;
        unsigned long part = strtoul(release, &end, 10);
        shift -= VERSION_BITS;
        version |= (uint64_t)(part < UINT16_MAX ? part : UINT16_MAX - 1) << shift;
        release = *end == '.' ? end + 1 : "";
    }
    return version;
}

struct traits_report detect_machine(void) {
    struct traits_report r = traits_report_empty();
    struct utsname u;
    r.values[TRAITS_PROCESSORS] = processors();
    r.values[TRAITS_MEMORY] = memory();
    r.values[TRAITS_NUMA] = numa_nodes();
    r.values[TRAITS_GPUS] = detect_gpus();
    r.values[TRAITS_NETWORK] = network();
    if (uname(&u) < 0)
        return r;
    r.values[TRAITS_KERNEL] = detect_version(u.release);
    traits_report_text(&r, TRAITS_ARCH, u.machine);
    traits_report_text(&r, TRAITS_OPSYS, u.sysname);
    traits_report_text(&r, TRAITS_HOST, u.nodename);
    return r;
}

/* A step needs the one before, so it tells how fast a processor is and not how wide. */
uint64_t detect_speed(void) {
    enum { STEPS = 1 << 14 };
    uint64_t best = UINT64_MAX, begin = clock_ns();
    do { /* the fastest of many short ones: whoever disturbs does not disturb all */
        volatile uint64_t seed = 1;
        uint64_t x = seed, from = clock_ns();
        for (int i = 0; i < STEPS; i++)
            x = x * 6364136223846793005U + 1442695040888963407U;
        seed = x;
        uint64_t took = clock_ns() - from;
        best = took < best ? took : best;
    } while (clock_ns() - begin < SPEED_NS);
    return best == 0 ? TRAITS_UNKNOWN : STEPS * NS_PER_US / best;
}
