/* SPDX-License-Identifier: MIT */
/* A process with pipes: see piped.h. */
#include "os/piped.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/child.h"
#include "os/clone.h"

struct ends {
    int near, far;
};

static void shut(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Only our end does not block: the far one is shared with programs that know nothing of it. */
static int open_pipe(struct ends *e, bool we_write) {
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) < 0)
        return -errno;
    *e = (struct ends){.near = fd[we_write], .far = fd[!we_write]};
    return fcntl(e->near, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_all(struct ends e[3], bool deaf) {
    int r = 0;
    for (int i = 0; i < 3 && r == 0; i++)
        r = i == 0 && deaf ? 0 : open_pipe(&e[i], i == 0);
    if (r == 0 && deaf) {
        e[0].far = open("/dev/null", O_RDONLY | O_CLOEXEC);
        r = e[0].far < 0 ? -errno : 0;
    }
    return r;
}

static void default_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    for (int s = 1; s <= CHILD_LAST_SIGNAL; s++)
        child_default(s);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the new process. What goes wrong is the answer on `status`. */
IN_CHILD static void become(const struct piped_order *o, const struct ends e[3], pid_t parent) {
    if (o->session)
        setsid();
    else
        setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (int i = 0; i < 3; i++)
        dup2(e[i].far, i);
    default_signals();
    child_set_files(o->files);
    if (o->folder != NULL && chdir(o->folder) < 0)
        return;
    execvp(o->argv[0], (char *const *)o->argv);
}

/* Shares our memory until it executes, so that its error is ours to read. */
static pid_t begin(const struct piped_order *o, const struct ends e[3]) {
    volatile int error = 0;
    pid_t parent = getpid();
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* no handler may run in the child */
    pid_t pid = vfork();
    if (pid == 0) {
        become(o, e, parent);
        error = errno;
        _exit(127);
    }
    int failed = pid < 0 ? errno : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid > 0 && error != 0) {
        waitpid(pid, NULL, 0);
        failed = error;
    }
    return failed != 0 ? -failed : pid;
}

int piped_start(const struct piped_order *o, struct piped *ret) {
    struct ends e[3] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int r = open_all(e, o->deaf);
    pid_t pid = r < 0 ? r : begin(o, e);
    for (int i = 0; i < 3; i++) {
        shut(&e[i].far);
        if (pid < 0)
            shut(&e[i].near);
    }
    if (pid < 0)
        return pid;
    *ret = (struct piped){.pid = pid, .in = e[0].near, .out = e[1].near, .err = e[2].near};
    return 0;
}
