/* SPDX-License-Identifier: MIT */
/* What the kernel writes when a process crashes: where it is, and how it comes to the folder of the job.
 *
 * kernel.core_pattern says where the kernel puts it, for the whole machine. It is looked for there, and moved to the
 * job's folder as core.JOB.RANK.NODE. What lies on another file system stays where it is, with that name. Where a core
 * is that cannot be had is said in a small file beside those that can: the name and ".where". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct corefile {
    const char *folder; /* that the process was started in */
    const char *own;    /* the job's */
    const char *name;   /* that it is to have */
    pid_t pid;
    int signal;
    bool apart;        /* the process knows itself by another number */
    uint64_t began_ns; /* when it did, or earlier; real time */
};

/* As the kernel would name it, for glob(3): "*" for what is not known here. False: a program gets it. */
bool corefile_expand(const char *pattern, bool uses_pid, const struct corefile *c, char *out,
                     size_t cap);

/* Is this the core of that process? What is no core is somebody's file, whatever it is called. Of one that is apart: is it a
 * core of ours that was written since it began? */
bool corefile_is_of(const char *path, const struct corefile *c);

/* Whatever becomes of it is to be found in the job's folder. */
void corefile_collect(const struct corefile *c);
