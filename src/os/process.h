/* SPDX-License-Identifier: MIT */
/* What the kernel tells about a process: its time on processors, its memory, its descriptors. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* All are 0 for a process that is gone, or that may not be looked at. */
uint64_t process_cpu_ns(pid_t pid);        /* of its main thread, since it began */
uint64_t process_private_bytes(pid_t pid); /* memory that it shares with nobody */
uint32_t process_descriptors(pid_t pid);
