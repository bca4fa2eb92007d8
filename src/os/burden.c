/* SPDX-License-Identifier: MIT */
/* How much this machine has to do: see burden.h. */
#include "os/burden.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

static void read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Two digits follow the point. */
static uint32_t hundredths(const char *text) {
    char *end;
    unsigned long whole = strtoul(text, &end, 10);
    unsigned long rest = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return (uint32_t)(whole * 100 + rest % 100);
}

static uint64_t kib_after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10) * KIB;
}

/* What the system would give to whoever asks is not used, whatever it is filled with now. */
void burden_parse(const char *loadavg, const char *meminfo, struct input_gauged *ret) {
    uint64_t total = kib_after(meminfo, "MemTotal:");
    uint64_t left = kib_after(meminfo, "MemAvailable:");
    *ret = (struct input_gauged){.load_x100 = hundredths(loadavg),
                                 .memory_bytes = total,
                                 .memory_used = left < total ? total - left : 0};
}

void burden_read(struct input_gauged *ret) {
    char load[128], memory[4096];
    read_text("/proc/loadavg", load, sizeof load);
    read_text("/proc/meminfo", memory, sizeof memory);
    burden_parse(load, memory, ret);
}
