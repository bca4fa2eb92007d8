/* SPDX-License-Identifier: MIT */
/* A cluster that is looked after from outside: see foreground.h.
 *
 * The sweeper, which outlives everything else of a cluster, leaves its parent behind; as we are a subreaper it comes to us, and
 * its end is ours to hear. */
#include "cli/foreground.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/down.h"
#include "os/claim.h"

static sigset_t signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

void foreground_prepare(void) {
    sigset_t set = signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool foreground_asked(void) {
    static bool asked;
    struct timespec now = {0};
    sigset_t set = signals(), blocked;
    sigdelset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    if (!asked && sigismember(&blocked, SIGTERM) == 1)
        asked = sigtimedwait(&set, NULL, &now) > 0;
    return asked;
}

/* To the service manager, if there is one; a name that begins with @ is abstract. Nobody is told of a failure: whoever waits for
 * the words will say that they did not come. */
static void notify(const char *words) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path == NULL ? 0 : strlen(path);
    if (len < 2 || len >= sizeof to.sun_path || (*path != '/' && *path != '@'))
        return;
    memcpy(to.sun_path, path, len + 1);
    if (*path == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    sendto(fd, words, strlen(words), MSG_NOSIGNAL, (const struct sockaddr *)&to, to_len);
    close(fd);
}

/* Whether the sweeper is gone by now. */
static bool reap(pid_t sweeper, int *ret_status) {
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != sweeper)
            continue;
        *ret_status = status;
        return true;
    }
    return pid < 0 && errno == ECHILD;
}

/* What it has ended with, as waitpid() has it; and whether we were asked to end it. */
static int await_end(const char *name, const char *folder, pid_t sweeper, int signals_fd) {
    int status = 0, asked = STATUS_OK;
    while (!reap(sweeper, &status)) {
        struct signalfd_siginfo info;
        ssize_t n = read(signals_fd, &info, sizeof info);
        if (n != sizeof info || info.ssi_signo == SIGCHLD)
            continue;
        notify("STOPPING=1");
        asked = down_cluster(name, folder, false);
    }
    if (status != 0) {
        complain(name, "it has ended, and not in good order; its log says why: %s/log", folder);
        return STATUS_STORM;
    }
    return asked;
}

int foreground_stay(const char *name, const char *folder) {
    struct claim_holder holder;
    sigset_t set = signals();
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (fd < 0) {
        complain(name, "%s", strerror(errno));
        return STATUS_STORM;
    }
    fflush(stdout);
    int status = STATUS_OK;
    if (claim_look(folder, &holder) == 1) {
        notify("READY=1");
        status = await_end(name, folder, holder.sweeper, fd);
    }
    close(fd);
    return status;
}
