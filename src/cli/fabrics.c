/* SPDX-License-Identifier: MIT */
/* By which fabric files go: see fabrics.h. */
#include "cli/fabrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/carriers.h"
#include "os/child.h"
#include "os/companion.h"

bool fabrics_real(const char *provider) {
    static const char *const real[] = {"verbs", "efa", "cxi", "opx", "psm3"};
    size_t len = strcspn(provider, ";");
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        if (strlen(real[i]) == len && strncmp(real[i], provider, len) == 0)
            return true;
    return false;
}

void fabrics_read(struct fabrics *f, const char *text) {
    *f = (struct fabrics){0};
    while (*text != '\0') {
        size_t line = strcspn(text, "\n"), len = strcspn(text, " \n");
        bool known = len == 0 || len >= FABRIC_NAME_MAX || f->count == FABRICS_MAX;
        for (uint32_t i = 0; i < f->count && !known; i++)
            known = strlen(f->names[i]) == len && strncmp(f->names[i], text, len) == 0;
        if (!known)
            memcpy(f->names[f->count++], text, len);
        text += line + (text[line] == '\n');
    }
}

/* What it prints, all of it or as much as there is room for. */
static void read_all(int fd, char *out, size_t cap) {
    size_t len = 0;
    ssize_t n;
    while (len < cap - 1 && (n = read(fd, out + len, cap - 1 - len)) > 0)
        len += (size_t)n;
    out[len] = '\0';
}

int fabrics_list(struct fabrics *ret) {
    char program[PATH_MAX], text[16384];
    int line[2], status;
    if (companion_find("storm-fab", program, sizeof program) < 0)
        return -ENOENT;
    if (pipe(line) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {program, (char[]){"--providers"}, NULL};
        child_place(line[1], STDOUT_FILENO, 0);
        child_close_from(STDERR_FILENO + 1);
        execv(program, argv);
        _exit(1);
    }
    close(line[1]);
    if (pid > 0)
        read_all(line[0], text, sizeof text);
    close(line[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -errno;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return -ENODEV;
    fabrics_read(ret, text);
    return 0;
}

void fabrics_choose(const struct fabrics *f, bool between_hosts, char out[FABRIC_NAME_MAX + 1]) {
    out[0] = '\0';
    for (uint32_t i = 0; i < f->count && between_hosts && out[0] == '\0'; i++)
        if (fabrics_real(f->names[i]))
            snprintf(out, FABRIC_NAME_MAX + 1, "ofi:%.*s", FABRIC_NAME_MAX - 5, f->names[i]);
}

/* Nodes that are reached by sockets of this machine are on it. */
static bool between_hosts(const struct cluster *c) {
    return c->links == TRANSPORT_TCP && c->manager.any.sa_family == AF_INET &&
           ntohl(c->manager.in.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
}

/* Without a device of such a network here, storm-fab need not look: it takes a third of a second, as libfabric tries all
 * it has. */
static bool any_device(void) {
    static const char *const classes[] = {"/sys/class/infiniband", "/sys/class/cxi"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (access(classes[i], F_OK) == 0)
            return true;
    return false;
}

bool fabrics_word(const char *word) {
    return strcmp(word, "auto") == 0 || strcmp(word, "streams") == 0 ||
           carrier_name_good(bytes_from_str(word));
}

bool fabrics_pick(const char *word, const struct cluster *cluster, char out[FABRIC_NAME_MAX + 1]) {
    struct fabrics f;
    if (word == NULL)
        word = cluster->fabric[0] != '\0' ? cluster->fabric : "auto";
    out[0] = '\0';
    if (!fabrics_word(word))
        return false;
    if (strncmp(word, "ofi", 3) == 0)
        snprintf(out, FABRIC_NAME_MAX + 1, "%.*s", FABRIC_NAME_MAX, word);
    else if (strcmp(word, "auto") == 0 && between_hosts(cluster) && !cluster->sealed &&
             any_device() &&
             fabrics_list(&f) == 0) /* it would carry in the clear what links seal */
        fabrics_choose(&f, true, out);
    return true;
}
