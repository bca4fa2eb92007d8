/* SPDX-License-Identifier: MIT */
/* A thread that works for another: it has a small stack, and no signals, as these are for those who know about them. */
#pragma once

#include <pthread.h>

/* 0 or -errno. */
int thread_start(pthread_t *ret, void *(*work)(void *context), void *context);
