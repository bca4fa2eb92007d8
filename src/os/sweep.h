/* SPDX-License-Identifier: MIT */
/* All processes that descend from this one, as /proc has them.
 *
 * Complete as long as this process is a subreaper: what loses its parent becomes our child. What is
 * born while we look may be missed; whoever must not miss any looks until nothing new is found. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct descendant {
    pid_t pid;
    pid_t top; /* our child that it descends from, or is */
};

struct sweep {
    struct descendant *at;
    uint32_t count, cap;
    void (*found)(void *context, struct descendant d); /* NULL: nobody wants to know */
    void *context;
};

/* Only our children. 0 or -errno. */
int sweep_children(struct sweep *s);
/* And everything below them. `found` is called for each as soon as it is seen: what is to be done to a
 * process that does not live long must be done at once. */
int sweep_all(struct sweep *s, void (*found)(void *context, struct descendant d), void *context);
void sweep_fini(struct sweep *s);

/* 0 or -ENOMEM. */
int sweep_add(struct sweep *s, struct descendant d);

bool sweep_has(const struct sweep *s, pid_t pid);
void sweep_drop(struct sweep *s, pid_t pid); /* if it is there */

/* Is it stopped, by a signal or by whoever traces it? */
bool sweep_stopped(pid_t pid);

/* The value of a variable in a process's environment as it was when it was executed; false if it has
 * none, or if it is not to be seen. */
bool sweep_variable(pid_t pid, const char *name, uint64_t *ret_value);
