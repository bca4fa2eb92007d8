/* SPDX-License-Identifier: MIT */
/* CARMI for programs: the calls of <storm/carmi.h>, on a line to the launcher. The logic is in carmi_steward.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "client/carmi_inside.h"
#include "client/carmi_open.h"
#include "wire/classes.h"

enum { QUICK_MOST = 64 };

/* ---- the descriptor ---- */

static void write_all(int fd, struct bytes bytes) {
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.at, bytes.len);
        if (n > 0) {
            bytes = bytes_of(bytes.at + n, bytes.len - (size_t)n);
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, -1);
        } else if (n == 0 || errno != EINTR) {
            return; /* nobody wants it */
        }
    }
}

static void say_all(struct carmi *c) {
    uint16_t type;
    struct bytes body;
    c->more = false;
    while (c->error == 0 && steward_out(&c->steward, &type, &body)) {
        int r = line_say(&c->line, type, body);
        if (r == 0)
            c->more = true;
        if (r < 0)
            c->error = r;
        if (r <= 0)
            return;
        steward_went(&c->steward);
    }
}

static bool hear_one(struct carmi *c) {
    uint16_t type;
    struct bytes body;
    int r = c->error != 0 ? c->error : line_hear(&c->line, &type, &body);
    if (r < 0)
        c->error = r;
    if (r <= 0)
        return false;
    steward_hear(&c->steward, type, body);
    c->error = c->steward.refused;
    if (c->steward.output_to != 0)
        write_all(c->steward.output_to == 1 ? STDOUT_FILENO : STDERR_FILENO, c->steward.output);
    c->steward.output_to = 0;
    return true;
}

/* The program's descriptor is readable while there is a letter; beside that when the line is. Who looks into rings would not be woken. */
static void show(struct carmi *c) {
    bool now =
        !list_empty(&c->steward.letters) || c->error != 0 || (c->post.awake && c->post.ringed > 0);
    struct epoll_event e = {.events = EPOLLIN | (c->more ? (uint32_t)EPOLLOUT : 0U)};
    uint64_t count = 1;
    if (c->more != c->watched_out)
        epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->line.fd, &e);
    c->watched_out = c->more;
    if (now == c->shown)
        return;
    ssize_t n = now ? write(c->event, &count, sizeof count) : read(c->event, &count, sizeof count);
    c->shown = n == (ssize_t)sizeof count ? now : c->shown;
}

static void pump(struct carmi *c) {
    post_pump(&c->post);
    do
        say_all(c);
    while (hear_one(c));
    hosts_forget(&c->steward);
    if (c->steward.failed && c->error == 0)
        c->error = -ENOMEM;
}

/* Before the program goes on, which may wait for its descriptor: whoever writes into our rings is to wake us. */
static void settle(struct carmi *c) {
    while (!c->post.awake && post_sleep(&c->post))
        post_glance(&c->post);
    show(c);
}

void carmi_pump(struct carmi *c) {
    pump(c);
    settle(c);
}

static bool take(struct carmi *c, carmi_request call, struct carmi_message *ret) {
    bool found = steward_letter(&c->steward, call, ret);
    if (found && ret->kind == CARMI_DATA)
        post_read(&c->post, ret->bytes);
    return found;
}

/* The next letter, of any call or of this one, that is here or in rings. Where there is none, those that have sent something are told
 * that it has come. */
static bool take_now(struct carmi *c, carmi_request call, struct carmi_message *ret) {
    bool found, more = true;
    pump(c);
    while (!(found = take(c, call, ret)) && more) {
        post_idle(&c->post);
        more = post_sleep(&c->post);
        if (more)
            post_glance(&c->post);
    }
    settle(c);
    return found;
}

/* What is here, or in rings: that needs no call of the system. Now and then others have their turn. */
static bool take_quick(struct carmi *c, carmi_request call, struct carmi_message *ret) {
    if (++c->quick % QUICK_MOST == 0)
        pump(c);
    if (take(c, call, ret))
        return true;
    post_glance(&c->post);
    return take(c, call, ret);
}

/* The same as take_now, and a short look for what comes into rings. */
static bool take_soon(struct carmi *c, carmi_request call, struct carmi_message *ret) {
    post_wake(&c->post);
    bool found = take_quick(c, call, ret);
    if (!found) {
        pump(c);
        found = take(c, call, ret);
    }
    if (!found) {
        post_idle(&c->post);
        for (int i = 0; !found && i < QUICK_MOST && post_spin(&c->post); i++)
            found = take_quick(c, call, ret);
    }
    if (!found)
        return take_now(c, call, ret);
    show(c);
    return true;
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Waits until `until` (in milliseconds; UINT64_MAX: for ever) for the line, or other processes. False: the time is over. */
static bool wait_more(const struct carmi *c, uint64_t until) {
    uint64_t now = now_ms();
    if (until != UINT64_MAX && now >= until)
        return false;
    uint64_t left = until == UINT64_MAX || until - now > 3600000 ? 3600000 : until - now;
    struct pollfd both[] = {{.fd = c->line.fd, .events = (short)(POLLIN | (c->more ? POLLOUT : 0))},
                            {.fd = c->post.open ? c->post.epoll : -1, .events = POLLIN}};
    poll(both, 2, (int)left);
    return true;
}

/* ---- life ---- */

/* "HEAD:PROCESS", by whoever has spawned this process. What another program has left in the environment does not count. */
static void find_parent(struct carmi *c) {
    const char *text = getenv(CARMI_PARENT);
    char *end = NULL;
    unsigned long long head = text == NULL ? 0 : strtoull(text, &end, 10);
    if (head != 0 && *end == ':' && head == c->steward.head && head != c->steward.own)
        c->parent = strtoull(end + 1, NULL, 10);
}

/* One that is not reached speaks for its program, as far as whom it spawns is concerned. */
static int open_post(struct carmi *c, bool reached) {
    const char *rank = getenv("STORM_RANK");
    carmi_process high = rank == NULL ? 0 : strtoul(rank, NULL, 10);
    struct epoll_event e = {.events = EPOLLIN};
    c->post.self = high << 32 | c->steward.own;
    if (!reached)
        return 0;
    int r = post_open(&c->post, &c->steward, c->post.self);
    if (r == 0 && epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->post.epoll, &e) < 0)
        r = -errno;
    return r;
}

static int open_all(struct carmi *c, bool reached) {
    const char *job = getenv("STORM_JOB_ID");
    uint64_t seed = 0;
    int r = job == NULL ? -ENOENT : line_open(&c->line);
    if (r < 0)
        return r;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return -errno;
    r = steward_init(&c->steward, seed, (uint32_t)strtoul(job, NULL, 10));
    c->alive = r == 0;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN};
    if (r == 0 &&
        (c->epoll < 0 || c->event < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->line.fd, &e) < 0 ||
         epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->event, &e) < 0))
        r = -errno;
    if (r == 0)
        r = open_post(c, reached);
    return r;
}

int carmi_open(struct carmi **ret, bool reached) {
    struct carmi *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    c->epoll = c->event = c->line.fd = -1;
    int r = open_all(c, reached);
    while (r == 0 && !c->steward.ready) {
        carmi_pump(c);
        r = c->error;
        if (r == 0 && !c->steward.ready)
            wait_more(c, UINT64_MAX);
    }
    if (r < 0) {
        carmi_exit(c);
        return r == -EPIPE || r == -ECONNRESET ? -ECONNREFUSED : r;
    }
    find_parent(c);
    *ret = c;
    return 0;
}

int carmi_init(struct carmi **ret) {
    return carmi_open(ret, true);
}

void carmi_exit(struct carmi *c) {
    if (c == NULL)
        return;
    if (c->epoll >= 0)
        close(c->epoll);
    if (c->event >= 0)
        close(c->event);
    post_close(&c->post);
    line_close(&c->line);
    if (c->alive)
        steward_fini(&c->steward);
    free(c);
}

/* ---- messages ---- */

int carmi_fd(const struct carmi *c) {
    return c->epoll;
}

int carmi_next(struct carmi *c, struct carmi_message *ret) {
    return take_now(c, 0, ret) ? 1 : c->error;
}

int carmi_receive(struct carmi *c, struct carmi_message *ret, int timeout_ms) {
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : now_ms() + (uint64_t)timeout_ms;
    for (;;) {
        int r = take_soon(c, 0, ret) ? 1 : c->error;
        if (r != 0 || !wait_more(c, until))
            return r;
    }
}

int carmi_wait(struct carmi *c, carmi_request request, struct carmi_message *ret, int timeout_ms) {
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : now_ms() + (uint64_t)timeout_ms;
    for (;;) {
        if (take_soon(c, request, ret))
            return 1;
        if (c->error != 0)
            return c->error;
        if (!steward_outstanding(&c->steward, request))
            return -ESRCH;
        if (!wait_more(c, until))
            return 0;
    }
}

/* ---- requests ---- */

carmi_request carmi_begun(struct carmi *c, const struct call *call) {
    carmi_request id = call == NULL ? -ENOMEM : call->id;
    carmi_pump(c);
    return id > 0 && c->steward.failed ? -ENOMEM : id;
}

/* A request that is answered here and now. */
static carmi_request answer(struct carmi *c, struct call *call, enum carmi_kind kind, int error,
                            const char *why) {
    if (call == NULL)
        return -ENOMEM;
    carmi_request id = call->id;
    struct letter *l = letter_add(&c->steward, call, kind);
    if (error != 0)
        letter_failed(&c->steward, l, error, bytes_from_str(why));
    call_end(call);
    show(c);
    return l == NULL ? -ENOMEM : id;
}

carmi_request carmi_cancel_request(struct carmi *c, carmi_request request, int tag) {
    struct steward *s = &c->steward;
    carmi_pump(c);
    struct call *that = call_find(s, request);
    struct call *call = call_add(s, CALL_CONFIG, tag);
    if (that == NULL)
        return answer(c, call, CARMI_CANCELLED, ESRCH, "no such request is outstanding");
    if (that->kind == CALL_ADD)
        hosts_cancel(s, that);
    if (that->kind == CALL_SEND || that->kind == CALL_BROADCAST)
        post_cancel(&c->post, that->id);
    call_end(that); /* a process that it has started goes on, untold of */
    carmi_request id = answer(c, call, CARMI_CANCELLED, 0, "");
    carmi_pump(c);
    return id;
}

carmi_request carmi_config(struct carmi *c, int tag) {
    struct call *call = call_add(&c->steward, CALL_CONFIG, tag);
    if (call != NULL)
        errand_ask(&c->steward, ERRAND_CONFIG, SUBJECT_JOBS, 0, call->id);
    return carmi_begun(c, call);
}

carmi_request carmi_process_info(struct carmi *c, int tag) {
    struct call *call = call_add(&c->steward, CALL_PROCESSES, tag);
    if (call != NULL)
        errand_ask(&c->steward, ERRAND_PROCESSES, SUBJECT_JOBS, 0, call->id);
    return carmi_begun(c, call);
}

carmi_request carmi_get_host_info(struct carmi *c, carmi_host host, int tag) {
    struct call *call = call_add(&c->steward, CALL_INFO, tag);
    if (host == 0 || host > UINT32_MAX)
        return answer(c, call, CARMI_HOST_INFO, ESRCH, "the program does not have that host");
    if (call != NULL && call_add_host(&c->steward, call, host))
        errand_ask(&c->steward, ERRAND_INFO_HOST, SUBJECT_JOB, (uint32_t)host, call->id);
    return carmi_begun(c, call);
}

/* Until it is known what its class is like, if there is one. */
static void ask_class(struct steward *s, struct call *call, const char *name) {
    call->class_name = steward_copy(s, bytes_from_str(name));
    errand_ask(s, ERRAND_CLASSES, SUBJECT_CLASSES, s->head != 0 ? s->head : s->own, call->id);
}

carmi_request carmi_addhosts(struct carmi *c, const char *class_name, unsigned count,
                             unsigned increment, int tag) {
    struct steward *s = &c->steward;
    struct call *call = call_add(s, CALL_ADD_TO_BE, tag);
    if (class_name == NULL)
        return answer(c, call, CARMI_HOSTS_ADDED, EINVAL, "there is no such class");
    if (count == 0 || count > CARMI_HOSTS_MAX)
        return answer(c, call, CARMI_HOSTS_ADDED, EINVAL,
                      "no such number of hosts can be asked for");
    if (call == NULL)
        return -ENOMEM;
    call->count = call->waits = count;
    call->increment = increment == 0 ? 1 : increment > count ? count : increment;
    call->slots = calloc(count, 1);
    if (call->slots == NULL)
        s->failed = true;
    else
        ask_class(s, call, class_name);
    return carmi_begun(c, call);
}

/* Those that the program has, and that are not on their way out. */
static void choose_leaving(struct steward *s, struct call *call, const carmi_host *hosts,
                           size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct host *h = host_find(s, hosts[i]);
        bool ours =
            h != NULL && h->leaves == 0 && (h->stage == STAGE_RUNS || h->stage == STAGE_SUSPENDED);
        call->partly = call->partly || !ours;
        if (!ours || !call_add_host(s, call, hosts[i]))
            continue;
        h->leaves = call->id;
        call->waits++;
    }
}

carmi_request carmi_delhosts(struct carmi *c, size_t count, const carmi_host *hosts, int tag) {
    struct steward *s = &c->steward;
    carmi_pump(c);
    struct call *call = call_add(s, CALL_DELETE, tag);
    if (call != NULL)
        choose_leaving(s, call, hosts, count);
    if (call != NULL && call->waits == 0)
        return answer(c, call, CARMI_HOSTS_DELETED, ESRCH, "the program does not have these hosts");
    if (call != NULL)
        hosts_end(s, call->hosts, call->host_count);
    return carmi_begun(c, call);
}

static carmi_request notice(struct carmi *c, enum call_kind kind, size_t count,
                            const carmi_host *hosts, int tag) {
    struct call *call = call_add(&c->steward, kind, tag);
    if (call != NULL)
        call_set_hosts(&c->steward, call, hosts, count);
    return carmi_begun(c, call);
}

carmi_request carmi_delete_notify(struct carmi *c, size_t count, const carmi_host *hosts, int tag) {
    return notice(c, CALL_DELETE_NOTIFY, count, hosts, tag);
}

carmi_request carmi_suspend_notify(struct carmi *c, size_t count, const carmi_host *hosts,
                                   int tag) {
    return notice(c, CALL_SUSPEND_NOTIFY, count, hosts, tag);
}

carmi_request carmi_resume_notify(struct carmi *c, size_t count, const carmi_host *hosts, int tag) {
    return notice(c, CALL_RESUME_NOTIFY, count, hosts, tag);
}

/* Those that are there already are told of at once. */
carmi_request carmi_add_notify(struct carmi *c, const char *class_name, int tag) {
    struct steward *s = &c->steward;
    struct call *call =
        call_add(s, class_name == NULL ? CALL_ADD_NOTIFY : CALL_ADD_NOTIFY_TO_BE, tag);
    if (call != NULL && class_name != NULL)
        ask_class(s, call, class_name);
    else if (call != NULL)
        hosts_present(s, call);
    return carmi_begun(c, call);
}

/* ---- classes ---- */

/* Hosts of it that we have just asked for: the manager may not know of them yet. */
static bool is_awaited(const struct steward *s, const char *name) {
    LIST_EACH (l, &s->calls) {
        const struct call *call = CONTAINER_OF(l, struct call, at);
        if ((call->kind == CALL_ADD || call->kind == CALL_ADD_TO_BE) && call->class_name != NULL &&
            strcmp(call->class_name, name) == 0)
            return true;
    }
    return false;
}

static bool is_name(const char *name) {
    size_t len = name == NULL ? 0 : strlen(name);
    return len > 0 && len <= CLASS_NAME_MAX;
}

carmi_request carmi_define_class(struct carmi *c, const struct carmi_class *d, int tag) {
    struct call *call = call_add(&c->steward, CALL_CLASSES, tag);
    if (!is_name(d->name) || (d->expression != NULL && strlen(d->expression) > NEED_TEXT_MAX))
        return answer(c, call, CARMI_CLASS_DEFINED, EINVAL,
                      "a class needs a short name and an expression");
    if (call != NULL)
        class_change(&c->steward, call, VERB_DEFINE, d);
    return carmi_begun(c, call);
}

carmi_request carmi_remove_class(struct carmi *c, const char *class_name, int tag) {
    carmi_pump(c);
    struct call *call = call_add(&c->steward, CALL_CLASSES, tag);
    if (!is_name(class_name))
        return answer(c, call, CARMI_CLASS_REMOVED, EINVAL, "there is no such class");
    if (is_awaited(&c->steward, class_name))
        return answer(c, call, CARMI_CLASS_REMOVED, EBUSY,
                      "the program has hosts of it, or waits for some");
    if (call != NULL)
        class_change(&c->steward, call, VERB_UNDEFINE, &(struct carmi_class){.name = class_name});
    return carmi_begun(c, call);
}

carmi_request carmi_get_class_definitions(struct carmi *c, int tag) {
    struct steward *s = &c->steward;
    struct call *call = call_add(s, CALL_CLASSES, tag);
    if (call != NULL)
        errand_ask(s, ERRAND_CLASSES, SUBJECT_CLASSES, s->head != 0 ? s->head : s->own, call->id);
    return carmi_begun(c, call);
}
