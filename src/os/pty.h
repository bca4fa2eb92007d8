/* SPDX-License-Identifier: MIT */
/* A terminal for a process: what it sees as one, and the end that plays the person. */
#pragma once

#include <stdint.h>

/* 0 or -errno. */
int pty_open(int *ret_person, int *ret_process);
void pty_size(int person, uint32_t columns, uint32_t rows);
