/* SPDX-License-Identifier: MIT */
/* How a job ended, in a line for people: see epilogue.h. */
#include "cli/epilogue.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/use.h"

__attribute__((format(printf, 3, 4))) static void say(FILE *out, const char *what,
                                                      const char *format, ...) {
    va_list args;
    fprintf(out, "storm: %s: ", what);
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fputc('\n', out);
}

static void say_failed(FILE *out, const char *job, const char *node, const struct message_news *n,
                       const struct epilogue *v) {
    const char *why = strerror((int)n->value);
    switch ((enum spawn_step)n->step) {
    case SPAWN_PROGRAM:
        say(out, v->program != NULL ? v->program : job, "%s: %s", node, why);
        return;
    case SPAWN_FOLDER:
        say(out, v->folder != NULL ? v->folder : job, "%s: %s; see: --chdir", node, why);
        return;
    case SPAWN_LIMITS:
        say(out, job, "%s: your resource limits cannot be set there: %s; see: ulimit", node, why);
        return;
    case SPAWN_STDIO:
        say(out, job, "%s: its input and output cannot be set up: %s", node, why);
        return;
    case SPAWN_IMAGE:
        say(out, v->program != NULL ? v->program : job, "%s: what was sent there is gone: %s", node,
            why);
        return;
    case SPAWN_COPY:
        say(out, v->program != NULL ? v->program : job, "%s: it could not be sent there: %s", node,
            why);
        return;
    case SPAWN_HIDDEN:
        say(out, v->program != NULL ? v->program : job,
            "%s: that is another file there, or none: %s; see: --copy", node, why);
        return;
    default:
        say(out, job, "%s: no process could be made: %s", node, why);
    }
}

static void say_limit(FILE *out, const char *job, const struct epilogue *v) {
    char limit[UNITS_TEXT_MAX];
    if (v->limit_ns == 0) {
        say(out, job, "its time limit was reached");
        return;
    }
    units_format_duration(v->limit_ns, limit, sizeof limit);
    say(out, job, "time limit of %s reached", limit);
}

static void say_memory(FILE *out, const char *job, const char *node, const struct message_news *n) {
    char limit[UNITS_TEXT_MAX];
    units_format_size((uint64_t)n->value * MEMORY_UNIT, limit, sizeof limit);
    say(out, job,
        "process %" PRIu32 " on %s was killed: it used more than its %s of memory (--mem)", n->rank,
        node, limit);
}

void epilogue_loose(FILE *out, const struct cluster *c, const struct message_news *n) {
    char job[24], node[CLUSTER_NODE_NAME_MAX];
    if (n->loose == NO_NODE)
        return;
    snprintf(job, sizeof job, "job %" PRIu32, n->job);
    cluster_node_name(c, n->loose, node, sizeof node);
    say(out, job,
        "%s cannot limit memory as --mem asks: there is no memory controller for it; what a "
        "process allocates fails beyond the limit, but what it forks counts apart; see: storm "
        "doctor",
        node);
}

void epilogue_usage(FILE *out, const struct cluster *c, const struct message_news *n) {
    char job[24], peak[CLUSTER_NODE_NAME_MAX], node[CLUSTER_NODE_NAME_MAX], used[USE_TEXT_MAX];
    if (!state_over((enum job_state)n->state) || n->usage.peak_bytes == 0)
        return;
    snprintf(job, sizeof job, "job %" PRIu32, n->job);
    cluster_node_name(c, n->usage.peak_node, peak, sizeof peak);
    cluster_node_name(c, n->usage.node_node, node, sizeof node);
    use_text(&n->usage, bytes_from_str(peak), bytes_from_str(node), used);
    say(out, job, "used %s", used);
}

void epilogue_write(FILE *out, const struct cluster *c, const struct message_news *n,
                    const struct epilogue *v) {
    char job[24], node[CLUSTER_NODE_NAME_MAX] = "a node";
    snprintf(job, sizeof job, "job %" PRIu32, n->job);
    if (n->node != NO_NODE)
        cluster_node_name(c, n->node, node, sizeof node);
    if (!v->loose_told)
        epilogue_loose(out, c, n);
    if (n->state == STATE_DONE)
        return;
    if (n->text.len > 0 && n->cause == CAUSE_FAILED && n->node != NO_NODE)
        say(out, v->program != NULL ? v->program : job, "%s: it could not be sent there: %.*s",
            node, (int)(n->text.len < 300 ? n->text.len : 300), n->text.at);
    else if (n->text.len > 0)
        say(out, job, "%.*s", (int)(n->text.len < 300 ? n->text.len : 300), n->text.at);
    else if (n->node != NO_NODE && n->cause == CAUSE_FAILED)
        say_failed(out, job, node, n, v);
    else if (n->state == STATE_TIMEOUT)
        say_limit(out, job, v);
    else if (n->state == STATE_LOST || (n->node != NO_NODE && n->cause == CAUSE_LOST))
        say(out, job, "node %s was lost", node);
    else if (n->state == STATE_KILLED)
        say(out, job, "killed");
    else if (n->node != NO_NODE && n->cause == CAUSE_KILLED)
        say(out, job, "rank %" PRIu32 " on %s killed by signal %" PRIu32 " (%s)", n->rank, node,
            n->value, strsignal((int)n->value));
    else if (n->node != NO_NODE && n->cause == CAUSE_MEMORY)
        say_memory(out, job, node, n);
    else if (v->verbose && n->status != 0)
        say(out, job,
            "%" PRIu32 " of %" PRIu32 " processes ended with a nonzero status; the highest "
            "is %" PRIu32 " of rank %" PRIu32 " on %s",
            n->bad, n->procs, n->status, n->rank, node);
}

void epilogue_print(const struct cluster *c, const struct message_news *n,
                    const struct epilogue *v) {
    fflush(stdout);
    epilogue_write(stderr, c, n, v);
}
