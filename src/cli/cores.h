/* SPDX-License-Identifier: MIT */
/* --cores: what crashed processes have left, as it has come here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One that was here before. */
struct old_core {
    char *name;
    ino_t inode;
    uint64_t ctime_ns;
};

struct cores {
    uint32_t job; /* 0: nothing was fetched */
    struct old_core *old;
    uint32_t count;
};

/* Before those of a job are fetched: another cluster may have had a job of that number, and its cores may be here. */
void cores_begin(struct cores *c, uint32_t job);

/* Says which ranks of the job have left a core, and where it is: those that have come into this folder since it began have
 * names core.JOB.RANK.NODE. That is all. */
void cores_tell(struct cores *c);
