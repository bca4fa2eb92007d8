/* SPDX-License-Identifier: MIT */
/* What a mover does, and when: see diary.h. */
#include "os/diary.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "os/loop.h"

static const char *const names[DIARY_DEEDS] = {
    [DIARY_OPEN] = "open",     [DIARY_LINK] = "link",     [DIARY_PAGE] = "page",
    [DIARY_CAME] = "came",     [DIARY_STORE] = "store",   [DIARY_LOAD] = "load",
    [DIARY_SEND] = "send",     [DIARY_COMMIT] = "commit", [DIARY_SURVEY] = "survey",
    [DIARY_SUBMIT] = "submit", [DIARY_LAUNCH] = "launch", [DIARY_EXECUTE] = "execute",
    [DIARY_REPORT] = "report"};

void diary_open(struct diary *d, const char *path) {
    int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    d->out = fd < 0 ? NULL : fdopen(fd, "a");
    if (fd >= 0 && d->out == NULL)
        close(fd);
}

void diary_close(struct diary *d) {
    if (d->out != NULL)
        fclose(d->out);
    d->out = NULL;
}

uint64_t diary_now(const struct diary *d) {
    return d->out == NULL ? 0 : clock_ns();
}

void diary_note(struct diary *d, enum diary_deed deed, uint64_t from_ns, uint64_t to_ns,
                uint64_t what) {
    if (d->out != NULL)
        fprintf(d->out, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", names[deed], from_ns, to_ns,
                what);
}

void diary_flush(struct diary *d) {
    if (d->out != NULL)
        fflush(d->out);
}

bool diary_read(FILE *in, struct diary_note *ret) {
    char name[16];
    if (fscanf(in, "%15s %" SCNu64 " %" SCNu64 " %" SCNu64, name, &ret->from_ns, &ret->to_ns,
               &ret->what) != 4)
        return false;
    for (int i = 0; i < DIARY_DEEDS; i++)
        if (strcmp(name, names[i]) == 0) {
            ret->deed = (enum diary_deed)i;
            return true;
        }
    return false;
}
