/* SPDX-License-Identifier: MIT */
/*
 * WoDi, the work distributor: master-workers programs whose workers may come and go.
 *
 * After "Parallel Processing on Dynamic Resources with CARMI" (Pruyne, Livny 1996), section 3. A master hands work steps to
 * a server, `storm-wodi`, which hands them to workers, and receives each result exactly once, whichever of the workers,
 * the server and the master itself are killed and started again in between. docs/wodi.md says how to use it.
 *
 * Functions return 0 or a positive number, or -errno. A program finds its server by the environment variable STORM_WODI. A master that runs
 * as a job and says how its workers are started (`worker` below) needs neither: it has a server of its own, which asks the cluster for hosts, starts
 * workers there, and gives back what is of no use.
 * Handles must not be used by two threads at once; a program may have several.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WODI_API __attribute__((visibility("default")))
#else
#define WODI_API
#endif

/* The largest buffer, work step or result, a little less: the server has words of its own around it. */
#define WODI_BYTES_MAX   ((size_t)(1 << 20) - 1024)
#define WODI_CLASSES_MAX 8

/* ---- master ---------------------------------------------------------------------------------- */

struct wodi;

/* How the speed of a worker is known, so that long steps go to fast ones. */
enum wodi_speed {
    WODI_SPEED_CLASS,     /* the master says how fast each class is */
    WODI_SPEED_ATTRIBUTE, /* each worker says it of itself: STORM_WODI_SPEED, or its options */
    WODI_SPEED_BENCHMARK  /* each new worker executes a step that measures it */
};

struct wodi_class {
    unsigned
        need; /* workers that are desired; with `worker` the most that are started, 0: as many as there are steps */
    double speed; /* against other classes; 0: 1 */
    /* With `worker`: */
    unsigned least; /* workers that are kept, whatever there is to do */
    const char
        *expression; /* what their hosts must be like, as `storm run --need` takes it; NULL: any */
    unsigned processors; /* of each worker; 0: 1 */
};

struct wodi_options {
    const char *server; /* NULL: environment variable STORM_WODI */
    const char *
        name; /* by which a restarted master finds its work again; NULL: STORM_WODI_NAME, or "master" */
    const void *init; /* for every new worker */
    size_t init_bytes;
    const struct wodi_class *classes;
    unsigned class_count;
    int fewest; /* not 0: as few workers as make cycles as short as they can be, once lengths of steps are known */
    enum wodi_speed speed;
    const void *bench; /* a work step */
    size_t bench_bytes;
    unsigned patience_s; /* how long a server that is away is waited for; 0: ten minutes */
    /* The command of a worker, ending in NULL: if there is no server a program of a job starts its own. Without classes: one, at least one worker. */
    char *const *worker;
    const char *
        folder; /* of that server: the next run of the program with the same one goes on; NULL: one that is removed */
};

struct wodi_result {
    uint64_t cycle, step;
    uint32_t status;  /* as the worker has given it */
    uint64_t ns;      /* how long it took */
    const void *data; /* until the next call */
    size_t bytes;
};

/* What the server knows of this master, after a restart. */
struct wodi_state {
    uint64_t cycle;       /* the last that was begun */
    uint64_t ended;       /* the last that was ended; all before are too */
    uint64_t outstanding; /* steps whose results have not been received */
};

/* With a server of its own any call may return -ECHILD: workers cannot be started, or end at once; why is told on standard error. -ENOENT: there
 * is no server; and no worker is given, or this is no process of a job, or storm-wodi is not where libstorm is. */
WODI_API int wodi_init(struct wodi **ret, const struct wodi_options *options);

/* Cycles are numbered upwards from 1. 1: it was ended already, in a former life of this master. `steps`: how many will be
 * sent, 0: not known. The buffer goes to every worker before any step of the cycle. */
WODI_API int wodi_begin_cycle(struct wodi *w, uint64_t cycle, const void *buffer, size_t bytes,
                              uint64_t steps);

/* -EAGAIN: so many are under way that results must be received first. -ENOBUFS, of this or a later call: the numbers of the cycle have too many gaps (docs/wodi.md). A step that the server knows already (the master
 * was restarted) is not executed again. */
WODI_API int wodi_sendwork(struct wodi *w, uint64_t step, const void *work, size_t bytes);

/* Waits for the next result. 1: here it is; 0: none is missing. The one before is acknowledged thereby: it will never
 * be received again. */
WODI_API int wodi_rcvresult(struct wodi *w, struct wodi_result *ret);

/* Acknowledges too. -EBUSY: results are missing. The buffer goes to every worker. 1: as above. */
WODI_API int wodi_end_cycle(struct wodi *w, uint64_t cycle, const void *buffer, size_t bytes);

/* There is no more work: the server forgets this master. Frees the handle. */
WODI_API int wodi_complete(struct wodi *w);

/* Frees the handle only: the work goes on, for a master of the same name. A server of its own ends. */
WODI_API void wodi_free(struct wodi *w);

WODI_API void wodi_state(const struct wodi *w, struct wodi_state *ret);

/* ---- worker ---------------------------------------------------------------------------------- */

struct wodi_worker;

struct wodi_worker_options {
    const char *server;   /* NULL: STORM_WODI */
    unsigned class_index; /* among the master's classes; 0: STORM_WODI_CLASS, or 0 */
    double speed;         /* 0: STORM_WODI_SPEED, or 1 */
    unsigned patience_s;  /* as above */
};

enum wodi_event_kind {
    WODI_INIT,        /* what every worker of this master is to know; also after a new connection */
    WODI_CYCLE_START, /* buffer of wodi_begin_cycle */
    WODI_WORK,        /* must be answered by wodi_sendresult */
    WODI_CYCLE_END,   /* buffer of wodi_end_cycle */
    WODI_OVER         /* this master has no more work */
};

struct wodi_event {
    enum wodi_event_kind kind;
    uint32_t master; /* a server may have several */
    uint64_t cycle, step;
    int bench;        /* WODI_WORK: it only measures this worker */
    const void *data; /* until the next call */
    size_t bytes;
};

WODI_API int wodi_join(struct wodi_worker **ret, const struct wodi_worker_options *options);
/* Waits for the next event. A connection that was lost is made again. */
WODI_API int wodi_rcvwork(struct wodi_worker *w, struct wodi_event *ret);
WODI_API int wodi_sendresult(struct wodi_worker *w, uint32_t status, const void *result,
                             size_t bytes);
WODI_API void wodi_leave(struct wodi_worker *w);

/* A worker as a loop. Callbacks that are NULL are passed over, except `work`, which says its result by wodi_sendresult. One
 * that returns other than 0 ends the loop with that. */
struct wodi_callbacks {
    int (*init)(void *context, const struct wodi_event *event);
    int (*cycle_start)(void *context, const struct wodi_event *event);
    int (*work)(void *context, struct wodi_worker *w, const struct wodi_event *event);
    int (*cycle_end)(void *context, const struct wodi_event *event);
};
/* Returns 0 when no master is left that it has worked for. */
WODI_API int wodi_worker(const struct wodi_worker_options *options,
                         const struct wodi_callbacks *callbacks, void *context);

#ifdef __cplusplus
}
#endif
