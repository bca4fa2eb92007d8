/* SPDX-License-Identifier: MIT */
/* The file of a program: see program.h. */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/complain.h"

enum { LINE_BYTES = 256 };

static int refuse(int status, const char *what, const char *why) {
    complain(what, "%s", why);
    return status;
}

/* The interpreter of a script, "" if the file is none. */
static void interpreter(const char *path, char out[LINE_BYTES]) {
    char line[LINE_BYTES] = "";
    out[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* what may be executed need not be readable */
    ssize_t n = pread(fd, line, sizeof line - 1, 0);
    close(fd);
    if (n < 2 || strncmp(line, "#!", 2) != 0)
        return;
    const char *at = line + 2 + strspn(line + 2, " \t");
    snprintf(out, LINE_BYTES, "%.*s", (int)strcspn(at, " \t\r\n"), at);
}

static int check_interpreter(const char *name, const char *path) {
    char file[LINE_BYTES];
    interpreter(path, file);
    if (file[0] == '\0' || access(file, X_OK) == 0)
        return 0;
    complain(name, "its interpreter %s: %s; correct its first line", file, strerror(errno));
    return STATUS_NOT_RUN;
}

static int check(const char *name, const char *path) {
    struct stat st;
    if (stat(path, &st) < 0) {
        bool gone = errno == ENOENT || errno == ENOTDIR;
        complain(name, "%s; is the name right?", strerror(errno));
        return gone ? STATUS_NOT_FOUND : STATUS_NOT_RUN;
    }
    if (S_ISDIR(st.st_mode))
        return refuse(STATUS_NOT_RUN, name, "it is a directory; name a program in it");
    if (access(path, X_OK) < 0)
        return refuse(STATUS_NOT_RUN, name,
                      "it may not be executed; type: chmod +x, if it is a program");
    return check_interpreter(name, path);
}

static int join(char *out, size_t cap, const char *folder, size_t folder_len, const char *name) {
    if (folder_len == 0) {
        folder = ".";
        folder_len = 1;
    }
    int n = snprintf(out, cap, "%.*s/%s", (int)folder_len, folder, name);
    return n < 0 || (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

static bool is_program(const char *path) {
    struct stat st;
    return access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The first of the folders that has it; one that may not be executed only if there is no other. */
static bool search(const char *name, const char *folder, const char *path, char *out, size_t cap) {
    char there[4096], found[4096] = "";
    for (const char *at = path;; at++) {
        size_t len = strcspn(at, ":");
        if (join(there, sizeof there, at, len, name) == 0) {
            if (is_program(there)) {
                snprintf(found, sizeof found, "%s", there);
                break;
            }
            if (found[0] == '\0' && access(there, F_OK) == 0)
                snprintf(found, sizeof found, "%s", there);
        }
        at += len;
        if (*at == '\0')
            break;
    }
    if (found[0] == '\0')
        return false;
    if (found[0] == '/')
        snprintf(out, cap, "%s", found);
    else
        join(out, cap, folder, strlen(folder), found);
    return true;
}

int program_find(const char *shown, const char *name, const char *folder, const char *path,
                 char *out, size_t cap) {
    if (*name == '\0')
        return refuse(STATUS_NOT_FOUND, *shown == '\0' ? "\"\"" : shown,
                      "that is no name of a program");
    if (strchr(name, '/') == NULL) {
        if (!search(name, folder, path, out, cap))
            return refuse(STATUS_NOT_FOUND, shown,
                          "not found in PATH; is the name right? (./NAME is one in this folder)");
        return check(shown, out);
    }
    int r = *name == '/' ? snprintf(out, cap, "%s", name) >= (int)cap
                         : join(out, cap, folder, strlen(folder), name);
    if (r != 0)
        return refuse(STATUS_NOT_FOUND, shown, "the name is too long");
    return check(shown, out);
}
