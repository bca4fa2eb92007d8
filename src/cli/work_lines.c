/* SPDX-License-Identifier: MIT */
/* The lines of storm work on their way there and back: see work.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/terminal.h"
#include "cli/work.h"

/* Lines that are read and sent in one turn: results are not to wait. */
enum { TURN_MAX = 4096 };

static int no_memory(void) {
    complain("work", "%s", strerror(ENOMEM));
    return -ENOMEM;
}

static bool has_ended(const struct workbook_line *l) {
    return l->state == WORKBOOK_HELD || l->state == WORKBOOK_SHOWN;
}

/* ---- there ---- */

static int send_again(struct work *w) {
    while (w->again_count > 0) {
        uint64_t number = w->again[w->again_count - 1];
        const struct workbook_line *l = workbook_line(&w->book, number);
        int r =
            office_send(&w->office, number + l->tries * CHORE_TRY_ONE, bytes_from_str(l->command));
        if (r == -EAGAIN)
            return r;
        if (r < 0)
            return no_memory();
        w->again_count--;
    }
    return 0;
}

static int want_again(struct work *w, uint64_t number) {
    if (w->again_count == w->again_cap) {
        w->again_cap = 2 * w->again_cap + 64;
        w->again = reallocarray(w->again, w->again_cap, sizeof *w->again);
        if (w->again == NULL)
            return no_memory();
    }
    workbook_line(&w->book, number)->tries++;
    w->again[w->again_count++] = number;
    return 0;
}

static int show_held(struct work *w, uint64_t number);

/* A line that the book has the end of counts as if it had been sent. */
static int send_line(struct work *w, uint64_t number, char *command) {
    int r = workbook_sent(&w->book, number, command);
    if (r == -ESTALE) {
        complain("work", "line %" PRIu64 " is not what it was in %s: %.60s; give it the same list",
                 number, w->name, command);
        return r;
    }
    if (r < 0)
        return no_memory();
    struct workbook_line *l = workbook_line(&w->book, number);
    if (!has_ended(l)) {
        r = office_send(&w->office, number, bytes_from_str(command));
        if (r == -EMSGSIZE)
            complain("work", "line %" PRIu64 " is longer than 1 MB: %.60s", number, command);
        if (r < 0)
            return r;
        w->open++;
    } else {
        w->ended++;
        w->failed += l->failed;
    }
    l->command = command;
    return l->state == WORKBOOK_HELD && w->wish->unordered ? show_held(w, number) : 0;
}

/* The next line; 1: there is one in w->pending. */
static int next_line(struct work *w) {
    if (w->pending != NULL)
        return 1;
    int r = supply_next(&w->supply, &w->pending);
    w->input_over = w->input_over || r == -ENODATA;
    return r == -ENODATA ? 0 : r == -ENOMEM ? no_memory() : r;
}

/* A file is always ready, and cannot be waited for. */
static int watch_input(struct work *w, bool want) {
    if (want == w->input_watched)
        return 0;
    if (!want)
        loop_remove(&w->contact.loop, &w->input);
    w->input.fd = w->supply.fd;
    int r = want ? loop_add(&w->contact.loop, &w->input, EPOLLIN) : 0;
    w->input_watched = want && r == 0;
    return r;
}

/* -EAGAIN: nothing can be read now. */
static int read_more(struct work *w) {
    int r = watch_input(w, true);
    if (r == 0)
        return -EAGAIN; /* the loop tells when there is something */
    r = r == -EPERM ? supply_read(&w->supply) : r;
    if (r < 0)
        complain("work", "the lines cannot be read: %s", strerror(-r));
    return r;
}

int work_feed(struct work *w) {
    int r = send_again(w), count = 0;
    while (r == 0 && !w->input_over && count < TURN_MAX) {
        r = next_line(w);
        if (r == 0 && !w->input_over)
            r = read_more(w);
        if (r != 1)
            continue;
        r = send_line(w, w->supply.seq, w->pending);
        if (r == 0)
            w->pending = NULL;
        count++;
    }
    if (r == -EAGAIN && w->pending != NULL) /* there is no room: what comes is not read */
        watch_input(w, false);
    if (w->input_over)
        watch_input(w, false);
    if (count == TURN_MAX)
        loop_wake_at(&w->contact.loop, w->contact.loop.now);
    return r == -EAGAIN ? 0 : r;
}

/* ---- and back ---- */

static void show(struct work *w, uint64_t number, const struct chore_result *r) {
    struct workbook_line *l = workbook_line(&w->book, number);
    if (w->wish->progress)
        terminal_progress(NULL);
    showing_show(&w->showing, number, l->command, r);
    free(l->command);
    l->command = NULL;
}

int work_write_down(struct work *w) {
    int r = showing_flush(&w->showing);
    if (r < 0) {
        complain("work", "the output cannot be written: %s", strerror(-r));
        return r;
    }
    r = workbook_flush(&w->book);
    if (r < 0)
        complain(w->folder, "%s", strerror(-r));
    return r;
}

/* It is read from the book, which must not say before that others were shown that are still on their way. */
static int show_held(struct work *w, uint64_t number) {
    struct chore_result r;
    size_t len;
    int status = workbook_is_written(&w->book, number) ? 0 : work_write_down(w);
    if (status < 0)
        return status;
    uint8_t *result = workbook_held(&w->book, number, &len);
    if (result == NULL || !chore_result_read(&r, bytes_of(result, len))) {
        free(result);
        complain("work", "the output of line %" PRIu64 " cannot be read", number);
        return -EIO;
    }
    const struct workbook_line *l = workbook_line(&w->book, number);
    bool failed = l->failed;
    if (l->early)
        showing_log(&w->showing, number, l->command, &r);
    show(w, number, &r);
    free(result);
    return workbook_shown(&w->book, number, failed) < 0 ? no_memory() : 0;
}

/* From the next line on, as far as lines have ended. */
static int show_in_order(struct work *w) {
    int r = 0;
    while (r == 0 && w->next <= w->supply.seq) {
        const struct workbook_line *l = workbook_line(&w->book, w->next);
        if (!has_ended(l) || (l->state == WORKBOOK_HELD && l->command == NULL))
            break;
        if (l->state == WORKBOOK_HELD)
            r = show_held(w, w->next);
        w->next++;
    }
    return r;
}

void work_show_rest(struct work *w) {
    for (uint64_t i = 1; i <= w->supply.seq; i++) {
        const struct workbook_line *l = workbook_line(&w->book, i);
        if (l->state == WORKBOOK_HELD && l->command != NULL && show_held(w, i) < 0)
            return;
    }
}

static void count_end(struct work *w, uint64_t number, const struct chore_result *r) {
    w->open--;
    w->ended++;
    if (chore_status(r) == 0)
        return;
    w->failed++;
    if (w->first_failed == 0 || number < w->first_failed) {
        w->first_failed = number;
        w->first_status = chore_status(r);
        snprintf(w->first_command, sizeof w->first_command, "%s",
                 workbook_line(&w->book, number)->command);
    }
}

/* A former life has asked for it, and its line was not read yet in this one. If it is to be tried again it is as if it had not
 * come: see look_for_lost. */
static int hold_early(struct work *w, uint64_t number, bool failed, struct bytes result) {
    if (failed && w->wish->retries > 0)
        return 0;
    workbook_line(&w->book, number)->early = true;
    return workbook_hold(&w->book, number, failed, result) < 0 ? no_memory() : 0;
}

static int take(struct work *w, const struct side_result *s) {
    uint64_t number = s->step & CHORE_LINE_MASK;
    struct bytes body = bytes_of(s->body, s->len);
    struct chore_result r;
    struct workbook_line *l = workbook_line(&w->book, number);
    if (l == NULL || !chore_result_read(&r, body)) {
        complain("work", "a worker says what makes no sense");
        return -EPROTO;
    }
    bool failed = chore_status(&r) != 0;
    if (has_ended(l))
        return 0; /* a former life has had it, and was killed before it could say so */
    if (l->command == NULL)
        return hold_early(w, number, failed, body);
    if (failed && l->tries < w->wish->retries)
        return want_again(w, number);
    showing_log(&w->showing, number, l->command, &r);
    count_end(w, number, &r);
    bool now = w->wish->unordered || number == w->next;
    if (now)
        show(w, number, &r);
    int status = now ? workbook_shown(&w->book, number, failed)
                     : workbook_hold(&w->book, number, failed, body);
    if (status < 0)
        return no_memory();
    if (workbook_is_full(&w->book) && (status = work_write_down(w)) < 0)
        return status;
    return now && !w->wish->unordered ? show_in_order(w) : 0;
}

/* After a restart: lines that the distributor has forgotten, as their results were acknowledged and the book does not have
 * them. That is where a former life was killed in between. */
static int look_for_lost(struct work *w) {
    int r = 0;
    if (w->open == 0 || w->again_count > 0 || !office_idle(&w->office))
        return 0;
    for (uint64_t i = 1; i <= w->supply.seq && r == 0; i++) {
        const struct workbook_line *l = workbook_line(&w->book, i);
        if (l->command != NULL && !has_ended(l))
            r = want_again(w, i);
    }
    return r;
}

int work_collect(struct work *w) {
    int r = 0;
    for (struct side_result *s; r == 0 && (s = office_take(&w->office)) != NULL;) {
        r = take(w, s);
        free(s);
        if (work_is_halted(w))
            return r;
    }
    if (r == 0 && !w->wish->unordered)
        r = show_in_order(w);
    return r == 0 ? look_for_lost(w) : r;
}

bool work_is_halted(const struct work *w) {
    return w->wish->halt && w->first_failed != 0;
}

bool work_is_done(const struct work *w) {
    return w->input_over && w->pending == NULL && w->open == 0 && w->again_count == 0;
}
