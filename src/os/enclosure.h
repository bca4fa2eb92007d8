/* SPDX-License-Identifier: MIT */
/* Bytes through a Unix socket, and with them a descriptor. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* As send(); descriptor -1: none goes with it. */
ssize_t enclosure_send(int to, const void *bytes, size_t len, int descriptor, int flags);

/* As recv(), at once or not at all; *ret_descriptor is -1 if none has come. Of several none is kept. */
ssize_t enclosure_receive(int from, void *bytes, size_t len, int *ret_descriptor);
