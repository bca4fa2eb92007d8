/* SPDX-License-Identifier: MIT */
/* What the kernel writes when a process crashes: see corefile.h. */
#include "os/corefile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "os/files.h"

/* ---- where ---- */

static bool read_setting(const char *path, char *out, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, cap - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return true;
}

/* What stands for itself, also if it could be a pattern. */
static int expand_plain(const char *text, size_t len, char *out, size_t cap) {
    int at = 0;
    for (; len > 0 && (size_t)at < cap; text++, len--)
        at += snprintf(out + at, cap - (size_t)at, strchr("*?[\\", *text) != NULL ? "\\%c" : "%c",
                       *text);
    return at;
}

/* One letter behind a percent sign. */
static int expand_one(char letter, const struct corefile *c, char *out, size_t cap) {
    if (letter == '%')
        return snprintf(out, cap, "%%");
    if (letter == 's')
        return snprintf(out, cap, "%d", c->signal);
    if ((letter == 'p' && !c->apart) || letter == 'P')
        return snprintf(out, cap, "%d", (int)c->pid);
    return snprintf(out, cap, "*");
}

bool corefile_expand(const char *pattern, bool uses_pid, const struct corefile *c, char *out,
                     size_t cap) {
    bool named = false;
    if (pattern[0] == '|' || pattern[0] == '@')
        return false;
    int at = 0;
    if (pattern[0] != '/') {
        at = expand_plain(c->folder, strlen(c->folder), out, cap);
        at += (size_t)at < cap ? snprintf(out + at, cap - (size_t)at, "/") : 0;
    }
    for (const char *p = pattern; *p != '\0' && (size_t)at < cap; p++) {
        char *to = out + at;
        size_t room = cap - (size_t)at;
        if (*p != '%') {
            at += expand_plain(p, 1, to, room);
        } else if (*++p != '\0') {
            named = named || *p == 'p';
            at += expand_one(*p, c, to, room);
        } else {
            break;
        }
    }
    if (uses_pid && !named && (size_t)at < cap)
        at += snprintf(out + at, cap - (size_t)at, c->apart ? ".*" : ".%d", (int)c->pid);
    return (size_t)at < cap;
}

/* ---- whose ---- */

/* Times of files are those of the last tick. */
#define TICK_NS (20 * NS_PER_MS)

enum { NOTES_MAX = 64 * 1024, HEADERS_MAX = 64 };

static bool find_pid(const uint8_t *notes, size_t len, pid_t *ret) {
    Elf64_Nhdr h;
    struct elf_prpsinfo info;
    for (size_t at = 0; at + sizeof h <= len;) {
        memcpy(&h, notes + at, sizeof h);
        size_t words = at + sizeof h + (((size_t)h.n_namesz + 3) & ~(size_t)3);
        if (words > len || h.n_descsz > len - words)
            return false;
        if (h.n_type == NT_PRPSINFO && h.n_descsz >= sizeof info) {
            memcpy(&info, notes + words, sizeof info);
            *ret = info.pr_pid;
            return true;
        }
        at = words + (((size_t)h.n_descsz + 3) & ~(size_t)3);
    }
    return false;
}

static bool read_head(int fd, Elf64_Ehdr *ret) {
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', ELFCLASS64};
    return pread(fd, ret, sizeof *ret, 0) == sizeof *ret &&
           memcmp(ret->e_ident, magic, sizeof magic) == 0 && ret->e_type == ET_CORE &&
           ret->e_phentsize == sizeof(Elf64_Phdr);
}

static bool read_pid(int fd, const Elf64_Ehdr *head, pid_t *ret) {
    Elf64_Phdr part;
    uint8_t notes[NOTES_MAX];
    for (size_t i = 0; i < head->e_phnum && i < HEADERS_MAX; i++) {
        if (pread(fd, &part, sizeof part, (off_t)(head->e_phoff + i * sizeof part)) != sizeof part)
            return false;
        if (part.p_type != PT_NOTE)
            continue;
        size_t len = part.p_filesz < sizeof notes ? (size_t)part.p_filesz : sizeof notes;
        ssize_t got = pread(fd, notes, len, (off_t)part.p_offset);
        return got > 0 && find_pid(notes, (size_t)got, ret);
    }
    return false;
}

/* The number in a core is the one that the process knew itself by. */
static bool is_ours(int fd, const struct corefile *c) {
    struct stat st;
    Elf64_Ehdr head;
    pid_t own = 0;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_head(fd, &head))
        return false;
    if (!c->apart)
        return read_pid(fd, &head, &own) && own == c->pid;
    return st.st_uid == geteuid() && files_mtime_ns(&st) + TICK_NS >= c->began_ns;
}

bool corefile_is_of(const char *path, const struct corefile *c) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool ours = is_ours(fd, c);
    close(fd);
    return ours;
}

/* ---- collecting ---- */

static void tell_where(const struct corefile *c, const char *words, const char *more) {
    char path[PATH_MAX], host[256] = "";
    snprintf(path, sizeof path, "%s/%s.where", c->own, c->name);
    FILE *f = fopen(path, "wxe");
    if (f == NULL)
        return;
    gethostname(host, sizeof host - 1);
    fprintf(f, "%s: %s%s\n", host, words, more);
    fclose(f);
}

/* On another file system it keeps its place, not its name. */
static void move(const struct corefile *c, const char *found) {
    char to[PATH_MAX];
    if (snprintf(to, sizeof to, "%s/%s", c->own, c->name) < (int)sizeof to &&
        rename(found, to) == 0)
        return;
    const char *slash = strrchr(found, '/');
    int folder = (int)(slash - found);
    if (errno == EXDEV &&
        snprintf(to, sizeof to, "%.*s/%s", folder, found, c->name) < (int)sizeof to &&
        rename(found, to) == 0)
        tell_where(c, "", to);
    else
        tell_where(c, "", found);
}

void corefile_collect(const struct corefile *c) {
    char pattern[256], uses[8] = "0", path[PATH_MAX];
    glob_t found = {0};
    if (!read_setting("/proc/sys/kernel/core_pattern", pattern, sizeof pattern))
        return;
    (void)read_setting("/proc/sys/kernel/core_uses_pid", uses, sizeof uses);
    if (!corefile_expand(pattern, uses[0] == '1', c, path, sizeof path)) {
        tell_where(c, "the kernel gives cores to a program there: ", pattern);
        return;
    }
    bool done = false;
    if (glob(path, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !done; i++) {
            done = corefile_is_of(found.gl_pathv[i], c);
            if (done)
                move(c, found.gl_pathv[i]);
        }
    globfree(&found);
    if (!done)
        tell_where(c, "there is none any more at ", path);
}
