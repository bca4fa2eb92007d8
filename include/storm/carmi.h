/* SPDX-License-Identifier: MIT */
/*
 * CARMI: a running program asks its cluster for hosts, gives them back, learns what becomes of them, and starts processes there.
 * Its processes send messages to each other, and wait for these and for hosts in one place.
 *
 * After "Parallel Processing on Dynamic Resources with CARMI" (Pruyne, Livny 1996), appendix A. Every request returns its number
 * at once; what becomes of it arrives later, as messages that carry that number and a tag of the caller's choice. Any number of
 * requests may be outstanding. docs/carmi.md says how to use it.
 *
 * A program must have been started by `storm run` or `storm submit`: it talks to its cluster through its launcher and needs no key,
 * address or file. Daemons of the cluster may be killed and started again meanwhile; a request is carried out once.
 *
 * Functions return 0 or a positive number, or -errno. A handle must not be used by two threads at once.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CARMI_API __attribute__((visibility("default")))
#else
#define CARMI_API
#endif

struct carmi;

typedef int64_t carmi_request; /* positive; -errno: it was not even asked */
typedef uint64_t carmi_host; /* one node that the program was given; never used again for another */
/* One process of the program: those that were started by a spawn, and each rank of the program itself. */
typedef uint64_t carmi_process;

/* Bytes of one message between processes. */
#define CARMI_DATA_MAX ((size_t)16 << 20)

/* What a message is about: which of its fields say something. */
enum carmi_kind {
    CARMI_CANCELLED,     /* success */
    CARMI_CONFIG,        /* hosts */
    CARMI_HOST_INFO,     /* hosts (one), attributes */
    CARMI_HOSTS_ADDED,   /* hosts */
    CARMI_HOSTS_DELETED, /* hosts */
    CARMI_HOSTS_SUSPENDED,
    CARMI_HOSTS_RESUMED,
    CARMI_SPAWNED,      /* process, hosts (one) */
    CARMI_EXITED,       /* process, hosts (one), status, cpu_ns */
    CARMI_PROCESS_INFO, /* processes */
    CARMI_CLASSES,      /* classes */
    CARMI_CLASS_DEFINED,
    CARMI_CLASS_REMOVED,
    CARMI_PEERS, /* processes */
    CARMI_SENT,  /* process (0: it was a broadcast), count */
    CARMI_DATA /* request 0; process, tag, data, bytes: from another process, with the tag that it was sent with */
};

struct carmi_attribute {
    const char *name, *value;
};

/* A class is a name for hosts that are alike: `expression` is what they must be like, as `storm run --need` takes it; "" or NULL: any
 * node. */
struct carmi_class {
    const char *name;
    const char *expression;
    unsigned processors; /* of each host; 0: 1 */
};

struct carmi_process_info {
    carmi_process id;
    carmi_host host;
    carmi_process parent; /* 0: the program itself */
    const char *executable;
};

/* What it points to is valid until the next message is asked for, with the same handle. */
struct carmi_message {
    enum carmi_kind kind;
    int tag;
    carmi_request request;
    int last;    /* nothing more will be said of this request */
    int success; /* 0: it was refused, or could not be done; */
    int error; /* then an errno: ESRCH no such host or request, EBUSY in use, EINVAL no such class, ... */
    const char *text; /* and why, in words; "" otherwise */
    size_t host_count;
    const carmi_host *hosts;
    carmi_process process;
    int status;      /* as a shell has it */
    uint64_t cpu_ns; /* time of processors, user and system */
    size_t attribute_count;
    const struct carmi_attribute *attributes;
    size_t process_count;
    const struct carmi_process_info *processes;
    size_t class_count;
    const struct carmi_class *classes;
    size_t count; /* of processes that have got it */
    size_t bytes;
    const void *data;
};

/* A handle belongs to the process that has made it, and is not to be used after fork in the child.
 * -ENOENT: this process is not of a job, or the descriptor STORM_PETITION was closed. -EAGAIN: too many talk to the manager: 256 processes of one job may, and 1024 in all. */
CARMI_API int carmi_init(struct carmi **ret);
/* Hosts stay with the program until it ends, or another of its processes gives them back. */
CARMI_API void carmi_exit(struct carmi *c);

/* ---- messages -------------------------------------------------------------------------------- */

/* Readable (poll, select, epoll) when carmi_next may have a message. */
CARMI_API int carmi_fd(const struct carmi *c);
/* 1: the next message; 0: there is none now; -errno: the launcher is gone, or, -EAGAIN, the manager was started again and too many others talk to
 * it. */
CARMI_API int carmi_next(struct carmi *c, struct carmi_message *ret);
/* Waits for the next message of any request, or of this one (others are kept). 0: not in time. -ESRCH: no such request is
 * outstanding. timeout_ms -1: for ever. */
CARMI_API int carmi_receive(struct carmi *c, struct carmi_message *ret, int timeout_ms);
CARMI_API int carmi_wait(struct carmi *c, carmi_request request, struct carmi_message *ret,
                         int timeout_ms);

/* ---- requests: A.1 --------------------------------------------------------------------------- */

/* Hosts that a cancelled request has brought so far stay. success 0: no such request is outstanding, any more. */
CARMI_API carmi_request carmi_cancel_request(struct carmi *c, carmi_request request, int tag);

/* ---- hosts: A.2 ------------------------------------------------------------------------------ */

/* Hosts that the program has now. */
CARMI_API carmi_request carmi_config(struct carmi *c, int tag);

/* All that is known of a host: NAME, CLASS, STATE, PROCESSORS, SPEED, LOAD_X100 (a hundred for each process that wants to run),
 * MEMORY_TOTAL and MEMORY_USED (bytes), and every attribute that the cluster has of its node, ARCH and OPSYS among them. */
CARMI_API carmi_request carmi_get_host_info(struct carmi *c, carmi_host host, int tag);

/* Hosts of a class come `increment` at a time (0: one), until there are `count` more: a message for each group, the last of them
 * `last`. They are usable when the message is there. A class that is not defined: EINVAL. If some will not come, because somebody has
 * ended them while they waited, the last message has success 0 and ECANCELED, with the hosts of its group that came, if any did. A host
 * that is lost before its group is told was never there. */
CARMI_API carmi_request carmi_addhosts(struct carmi *c, const char *class_name, unsigned count,
                                       unsigned increment, int tag);

/* Gives hosts back; processes there are ended. The answer has those that are gone. One that the program does not have: ESRCH. */
CARMI_API carmi_request carmi_delhosts(struct carmi *c, size_t count, const carmi_host *hosts,
                                       int tag);

/* Until they are cancelled: hosts of a class (NULL: of any) that come because of `storm run --class`; hosts of these (0, NULL: of all)
 * that are lost, suspended or go on. One that is to be vacated is suspended first. */
CARMI_API carmi_request carmi_add_notify(struct carmi *c, const char *class_name, int tag);
CARMI_API carmi_request carmi_delete_notify(struct carmi *c, size_t count, const carmi_host *hosts,
                                            int tag);
CARMI_API carmi_request carmi_suspend_notify(struct carmi *c, size_t count, const carmi_host *hosts,
                                             int tag);
CARMI_API carmi_request carmi_resume_notify(struct carmi *c, size_t count, const carmi_host *hosts,
                                            int tag);

/* ---- processes: A.3 -------------------------------------------------------------------------- */

/* Starts a process on a host of the class, the one with the fewest of them, or on this very host. argv ends in NULL; NULL: the
 * executable alone. It has this program's environment, folder and output. A program that the host lacks is sent there, if it
 * is on the node of this process. Two messages: SPAWNED, then EXITED, which is the last. Of a program that could not be executed there may be
 * only one, SPAWNED, which is then the last; the last has success 0 and the reason. A host takes as many processes at once as it has processors: others wait. */
CARMI_API carmi_request carmi_class_spawn(struct carmi *c, const char *executable,
                                          char *const argv[], const char *class_name, int tag);
CARMI_API carmi_request carmi_host_spawn(struct carmi *c, const char *executable,
                                         char *const argv[], carmi_host host, int tag);

/* Processes that were started so and have not ended. */
CARMI_API carmi_request carmi_process_info(struct carmi *c, int tag);

/* ---- messages between processes ------------------------------------------------------------- */

/* This process, and the one that has spawned it (0: it was started with the program). */
CARMI_API carmi_process carmi_self(const struct carmi *c);
CARMI_API carmi_process carmi_parent(const struct carmi *c);

/* All processes of the program that have called carmi_init and have not ended, this one among them: their host is 0 if they were
 * started with the program, `executable` is the name of their job. */
CARMI_API carmi_request carmi_peers(struct carmi *c, int tag);

/* Sends bytes, which are copied, to a process of the same program; it receives CARMI_DATA with this tag. CARMI_SENT comes when it has
 * them and reads on. One that has not called carmi_init yet is waited for. success 0: ESRCH, the process has ended, or never was, or
 * ended before it said that it has them; EHOSTUNREACH, there is no way to it.
 * Messages from one process to another come in the order they were sent, each once.
 * -EMSGSIZE: more than CARMI_DATA_MAX; -EAGAIN: the receiver has not taken 32 MiB that it was sent before. A process that does not read
 * thus costs a sender that much memory, and stalls nobody else. Nobody reads for it: one that has 32 MiB unread gets no more. */
CARMI_API carmi_request carmi_send(struct carmi *c, carmi_process process, int tag,
                                   const void *data, size_t bytes);

/* The same to all processes on hosts of a class, or to all of the program (NULL), but this one: those that have called carmi_init when
 * this is asked for; of those that have not been in any call of this library since the manager was started again nothing is known yet.
 * CARMI_SENT comes when each has it or has ended, `count` have it. success 0: EAGAIN, some had no room for it and do not get it; all
 * others do. */
CARMI_API carmi_request carmi_broadcast(struct carmi *c, const char *class_name, int tag,
                                        const void *data, size_t bytes);

/* ---- classes: A.4 ---------------------------------------------------------------------------- */

/* All processes of a program have the same classes, also those that it has started on hosts. */
CARMI_API carmi_request carmi_get_class_definitions(struct carmi *c, int tag);
/* success 0: there is one of that name (EEXIST), or there are too many (ENOSPC). Whether any node is like that is found when hosts are asked for. */
CARMI_API carmi_request carmi_define_class(struct carmi *c, const struct carmi_class *definition,
                                           int tag);
/* success 0: there is none (EINVAL); or the program was started with it, has hosts of it, or waits for some (EBUSY). */
CARMI_API carmi_request carmi_remove_class(struct carmi *c, const char *class_name, int tag);

#ifdef __cplusplus
}
#endif
