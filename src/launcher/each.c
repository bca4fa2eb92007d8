/* SPDX-License-Identifier: MIT */
/* storm-each: a launcher for one process, as the STORM paper has them.
 *
 *     storm-each PROGRAM ARGUMENTS...
 *
 * Put between a node's launcher and each of its processes by `storm up --launchers process`: it starts the
 * program, waits for it, and ends as it has ended. It is here to be measured: one launcher a node is
 * faster, and does more. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 126, NO_PROGRAM = 127 };

/* As it has ended, without a second core. */
static int end_like(int status) {
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return CANNOT;
}

int main(int argc, char **argv) {
    int status = 0;
    if (argc < 2)
        return NO_PROGRAM;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(CANNOT);
        execv(argv[1], argv + 1);
        _exit(errno == ENOENT ? NO_PROGRAM : CANNOT);
    }
    if (pid < 0)
        return CANNOT;
    signal(SIGTERM, SIG_IGN); /* what a signal means is the program's affair */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return end_like(status);
}
