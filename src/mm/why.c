/* SPDX-License-Identifier: MIT */
/* In words: why a job cannot be taken, or has not started. */
#include <errno.h>

#include "mm/inside.h"
#include "sched/size.h"

static void name_nodes(struct mm *m, const struct nodeset *set, struct text *out) {
    char names[256];
    nodeset_format(set, m->config.prefix, names, sizeof names);
    text_str(out, names);
}

/* Nodes the job insists on that may not be used now. */
static int judge_wish(struct mm *m, const struct message_submit *s, struct text *why) {
    if (nodeset_empty(s->on))
        return 0;
    nodeset_copy(&m->work, s->on);
    nodeset_subtract(&m->work, s->exclude);
    if (nodeset_count(&m->work) < s->nodes) {
        text_str(why, "needs ");
        text_u64(why, s->nodes);
        text_str(why, " nodes, but only ");
        text_u64(why, nodeset_count(&m->work));
        text_str(why, " are named and not excluded");
        return -EINVAL;
    }
    NODESET_EACH (n, s->on)
        if (m->nodes[n].drained && nodeset_count(&m->work) == s->nodes) {
            nodeset_clear(&m->work);
            nodeset_add(&m->work, n);
            text_str(why, "node ");
            name_nodes(m, &m->work, why);
            text_str(why, " is drained (");
            text_strn(why, m->nodes[n].reason, m->nodes[n].reason_len);
            text_str(why, "); choose another, or undrain it");
            return -EBUSY;
        }
    return 0;
}

static int judge_step(struct mm *m, const struct message_submit *s, struct text *why) {
    const struct job *around = job_find(m, s->inside);
    if (around == NULL || state_over((enum job_state)around->state)) {
        text_str(why, "allocation ");
        text_u64(why, s->inside);
        text_str(why, " is over");
        return -ESRCH;
    }
    if (s->nodes > around->nodes || s->ppn > around->ppn) {
        text_str(why, "needs ");
        text_u64(why, s->nodes);
        text_str(why, s->nodes == 1 ? " node with " : " nodes with ");
        text_u64(why, s->ppn);
        text_str(why, s->ppn == 1 ? " processor" : " processors");
        text_str(why, "; the allocation has ");
        text_u64(why, around->nodes);
        text_str(why, " with ");
        text_u64(why, around->ppn);
        return -E2BIG;
    }
    return 0;
}

int why_not(struct mm *m, const struct message_submit *s, struct text *why) {
    struct size size = {.nodes = s->nodes, .ppn = s->ppn, .procs = s->procs};
    bool script = (s->flags & JOB_SCRIPT) != 0 || s->kind == JOB_ALLOC;
    if (s->nodes == 0 || s->ppn == 0 || s->procs == 0 || (!script && !size_is_whole(&size))) {
        text_str(why, "the size contradicts itself");
        return -EINVAL;
    }
    if (s->kind == JOB_STEP)
        return judge_step(m, s, why);
    int r = waits_judge(m, s, why);
    if (r == 0)
        r = judge_wish(m, s, why);
    if (r < 0 || queue_could(m, s))
        return r;
    text_str(why, "needs ");
    text_u64(why, s->nodes);
    text_str(why, s->nodes == 1 ? " node with " : " nodes with ");
    text_u64(why, s->ppn);
    text_str(why, s->ppn == 1 ? " processor" : " processors");
    text_str(why, "; the cluster has ");
    text_u64(why, m->config.limits.nodes);
    text_str(why, " with ");
    text_u64(why, m->config.pes);
    return -ENOSPC;
}

/* Nodes that it insists on and that cannot be used. */
static bool why_nodes(struct mm *m, const struct job *j, struct text *why) {
    const struct wish *w = job_wish(m, j);
    char list[128];
    if (w == NULL || nodeset_empty(&w->on))
        return false;
    nodeset_clear(&m->work);
    NODESET_EACH (i, &w->on)
        if (i < m->config.limits.nodes && !(m->nodes[i].member && m->nodes[i].announced))
            nodeset_add(&m->work, i);
    if (nodeset_count(&w->on) - nodeset_count(&m->work) >= j->nodes)
        return false;
    size_t len = nodeset_format(&m->work, m->config.prefix, list, sizeof list);
    text_str(why, "waits for ");
    text_strn(why, list, len < sizeof list ? len : sizeof list - 1);
    text_str(why, nodeset_count(&m->work) == 1 ? ", which is down" : ", which are down");
    return true;
}

/* Processors that are free in the slot that has most. */
static uint64_t most_free(const struct mm *m) {
    uint64_t most = 0;
    for (uint32_t s = 0; s < court_limits(m->court)->slots; s++)
        if (court_free(m->court, s) > most)
            most = court_free(m->court, s);
    return most;
}

static void why_places(struct mm *m, const struct job *j, struct text *why) {
    if (why_nodes(m, j, why))
        return;
    uint64_t needs = (uint64_t)j->nodes * j->ppn, has = most_free(m);
    if (has < needs) {
        text_str(why, "waits for ");
        text_u64(why, needs - has);
        text_str(why, needs - has == 1 ? " more processor" : " more processors");
    } else {
        text_str(why, "waits for nodes that have what it needs free at once");
    }
    uint32_t away = 0;
    for (uint32_t i = 0; i < m->config.limits.nodes; i++)
        away += m->nodes[i].drained || !(m->nodes[i].member && m->nodes[i].announced);
    if (away == 0)
        return;
    text_str(why, "; ");
    text_u64(why, away);
    text_str(why, away == 1 ? " node is drained or down" : " nodes are drained or down");
}

void why_waits(struct mm *m, const struct job *j, struct text *why) {
    if (j->state != STATE_QUEUED)
        return;
    if (j->kind == JOB_STEP) {
        text_str(why, "waits for room in allocation ");
        text_u64(why, j->inside);
        return;
    }
    if (m->stopped) {
        text_str(why, "the cluster is going down");
        return;
    }
    if (j->waits) {
        waits_why(m, j, why);
        return;
    }
    if (j->given) {
        text_str(why, "is about to start");
        return;
    }
    if (j->seat == COURT_NONE) {
        text_str(why, "needs more than the cluster has");
        return;
    }
    uint32_t seat = court_head(m->court);
    const struct job *head =
        seat == COURT_NONE ? j : job_find(m, (uint32_t)court_job(m->court, seat)->id);
    if (head != j) {
        text_str(why, "waits behind job ");
        text_u64(why, head->id);
        text_str(why, ", which ");
    }
    why_places(m, head, why);
}
