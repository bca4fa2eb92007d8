/* SPDX-License-Identifier: MIT */
/* A program that asks its cluster for what it is told to, line by line, and prints what becomes of it; for tests/e2e/carmi.py.
 *
 * A line is a call and its arguments: define NAME EXPRESSION, add CLASS COUNT INCREMENT, del HOST..., and so on. Each is answered
 * by "request N", and each message is a line: N, what it is about, and what it says. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storm/carmi.h"

enum { WORDS_MAX = 64, TAG = 7 };

static void print(const struct carmi_message *m) {
    static const char *const kinds[] = {"cancelled", "config",    "info",    "added",
                                        "deleted",   "suspended", "resumed", "spawned",
                                        "exited",    "processes", "classes", "defined",
                                        "removed",   "peers",     "sent",    "data"};
    printf("%" PRId64 " %s", m->request, kinds[m->kind]);
    if (m->tag != TAG)
        printf(" tag %d", m->tag);
    if (!m->success)
        printf(" failed %s (%s)", strerror(m->error), m->text);
    for (size_t i = 0; i < m->host_count; i++)
        printf(" %" PRIu64, m->hosts[i]);
    if (m->kind == CARMI_SPAWNED)
        printf(" process %" PRIu64, m->process);
    if (m->kind == CARMI_EXITED)
        printf(" process %" PRIu64 " status %d cpu %s", m->process, m->status,
               m->cpu_ns > 0 ? "some" : "none");
    for (size_t i = 0; i < m->attribute_count; i++)
        printf(" %s=%s", m->attributes[i].name, m->attributes[i].value);
    for (size_t i = 0; i < m->process_count; i++)
        printf(" %" PRIu64 "@%" PRIu64 ":%s", m->processes[i].id, m->processes[i].host,
               m->processes[i].executable);
    for (size_t i = 0; i < m->class_count; i++)
        printf(" %s:%s:%u", m->classes[i].name, m->classes[i].expression, m->classes[i].processors);
    printf("%s\n", m->last ? " last" : "");
    fflush(stdout);
}

/* Numbers among the words, from the second on. */
static size_t numbers(char **words, carmi_host *ret) {
    size_t count = 0;
    for (char **w = words + 1; *w != NULL; w++)
        ret[count++] = strtoull(*w, NULL, 10);
    return count;
}

static carmi_request about_hosts(struct carmi *c, char **words) {
    carmi_host list[WORDS_MAX];
    size_t count = numbers(words, list);
    if (strcmp(words[0], "del") == 0)
        return carmi_delhosts(c, count, list, TAG);
    if (strcmp(words[0], "lost") == 0)
        return carmi_delete_notify(c, count, list, TAG);
    if (strcmp(words[0], "suspends") == 0)
        return carmi_suspend_notify(c, count, list, TAG);
    if (strcmp(words[0], "resumes") == 0)
        return carmi_resume_notify(c, count, list, TAG);
    return -ENOSYS;
}

static carmi_request call(struct carmi *c, char **words) {
    const char *what = words[0], *first = words[1];
    if (strcmp(what, "config") == 0)
        return carmi_config(c, TAG);
    if (strcmp(what, "processes") == 0)
        return carmi_process_info(c, TAG);
    if (strcmp(what, "classes") == 0)
        return carmi_get_class_definitions(c, TAG);
    if (strcmp(what, "comes") == 0)
        return carmi_add_notify(c, first, TAG);
    if (strcmp(what, "define") == 0)
        return carmi_define_class(
            c, &(struct carmi_class){.name = first, .expression = words[2] ? words[2] : ""}, TAG);
    if (strcmp(what, "remove") == 0)
        return carmi_remove_class(c, first, TAG);
    if (strcmp(what, "info") == 0)
        return carmi_get_host_info(c, strtoull(first, NULL, 10), TAG);
    if (strcmp(what, "cancel") == 0)
        return carmi_cancel_request(c, strtoll(first, NULL, 10), TAG);
    if (strcmp(what, "add") == 0)
        return carmi_addhosts(c, first, (unsigned)atoi(words[2]), (unsigned)atoi(words[3]), TAG);
    if (strcmp(what, "spawn") == 0)
        return carmi_class_spawn(c, words[2], words + 2, first, TAG);
    if (strcmp(what, "on") == 0)
        return carmi_host_spawn(c, words[2], words + 2, strtoull(first, NULL, 10), TAG);
    return about_hosts(c, words);
}

static void obey(struct carmi *c, char *line) {
    char *words[WORDS_MAX + 1] = {0};
    size_t count = 0;
    for (char *rest = line, *w; count < WORDS_MAX && (w = strsep(&rest, " \n")) != NULL;)
        if (*w != '\0')
            words[count++] = w;
    carmi_request r = count == 0 ? -EINVAL : call(c, words);
    if (r < 0)
        printf("refused %s\n", strerror((int)-r));
    else
        printf("request %" PRId64 "\n", r);
    fflush(stdout);
}

int main(void) {
    struct carmi *c;
    struct carmi_message m;
    char line[4096];
    int r = carmi_init(&c);
    if (r < 0) {
        printf("init: %s\n", strerror(-r));
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    setvbuf(stdin, NULL, _IONBF, 0); /* what poll does not see must not be kept */
    for (;;) {
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = carmi_fd(c), .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[0].revents != 0 && fgets(line, sizeof line, stdin) == NULL)
            break;
        if (fds[0].revents != 0)
            obey(c, line);
        while (carmi_next(c, &m) == 1)
            print(&m);
    }
    carmi_exit(c);
    return 0;
}
