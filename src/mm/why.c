/* SPDX-License-Identifier: MIT */
/* In words: why a job cannot be taken, or has not started. */
#include <errno.h>

#include "mm/inside.h"
#include "sched/policies.h"
#include "sched/size.h"
#include "wire/crates.h"
#include "wire/spec.h"

static void name_nodes(struct mm *m, const struct nodeset *set, struct text *out) {
    char names[256];
    roster_format(&m->roster, set, names, sizeof names);
    text_str(out, names);
}

/* Nodes the job insists on that may not be used now. */
static int judge_wish(struct mm *m, const struct message_submit *s, struct text *why) {
    if (nodeset_empty(s->on))
        return 0;
    nodeset_and(&m->work, s->on, &m->taken);
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
        if (n < m->config.limits.nodes && m->nodes[n].drained &&
            nodeset_count(&m->work) == s->nodes) {
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

/* Of the nodes that the allocation has, or may get. */
static int judge_step_need(struct mm *m, const struct message_submit *s, const struct job *around,
                           struct text *why) {
    const struct running *r = job_running(m, around);
    if (s->need.len == 0)
        return 0;
    int e = needs_select(m, s->need, &m->work, why);
    if (e < 0 || r == NULL)
        return e;
    nodeset_intersect(&m->work, &r->set);
    if (nodeset_count(&m->work) >= s->nodes)
        return 0;
    text_str(why, "needs ");
    why_count(why, s->nodes, " node");
    text_str(why, " with what it says; of the allocation's ");
    text_u64(why, nodeset_count(&m->work));
    text_str(why, nodeset_count(&m->work) == 1 ? " has it" : " have it");
    return -ENOSPC;
}

static int judge_step(struct mm *m, const struct message_submit *s, struct text *why) {
    const struct job *around = job_find(m, s->inside);
    if (around == NULL || state_over((enum job_state)around->state)) {
        text_str(why, "allocation ");
        text_u64(why, s->inside);
        text_str(why, " is over");
        return -ESRCH;
    }
    if (around->kind != JOB_ALLOC && (around->flags & JOB_SCRIPT) == 0) {
        text_str(why, "job ");
        text_u64(why, s->inside);
        text_str(why, " is no allocation");
        return -EINVAL;
    }
    if (s->reservation.len > 0) {
        text_str(why, "what runs in an allocation has its nodes; leave --reservation out");
        return -EINVAL;
    }
    if ((s->flags & (JOB_SECTIONS | JOB_CLASSES | JOB_FAMILY | JOB_LENT)) != 0) {
        text_str(why, "programs with nodes or hosts of their own: not inside an allocation");
        return -EINVAL;
    }
    if (s->array_last > s->array_first) {
        text_str(why,
                 "an array is no step of an allocation; leave --array out, or submit it by itself");
        return -EINVAL;
    }
    int wrong = judge_step_need(m, s, around, why);
    if (wrong < 0)
        return wrong;
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

/* Who says where each process goes may have more on one node than on another. */
static bool is_whole(const struct message_submit *s, const struct size *size) {
    if ((s->flags & JOB_SECTIONS) != 0)
        return true; /* each of them is judged, and their sums */
    if ((s->flags & JOB_LISTED) == 0)
        return size_is_whole(size);
    return s->nodes <= s->procs && s->procs <= SIZE_PART_MAX && s->ppn <= s->procs &&
           s->procs <= (uint64_t)s->nodes * s->ppn;
}

/* Processors of nodes: "4", or "1 to 16". */
static void say_widths(struct mm *m, struct text *why) {
    uint32_t least = UINT32_MAX, most = 0;
    NODESET_EACH (n, &m->taken) {
        least = m->nodes[n].pes < least ? m->nodes[n].pes : least;
        most = m->nodes[n].pes > most ? m->nodes[n].pes : most;
    }
    if (least < most) {
        text_u64(why, least);
        text_str(why, " to ");
    }
    text_u64(why, most);
}

/* Of several programs: every rank has one, and what is said of their files can be read. */
static bool is_assigned(const struct message_submit *s) {
    struct spec spec;
    struct crate p;
    struct rank_range ranks;
    uint64_t all = 0;
    size_t at = 0;
    int r;
    if ((s->flags & JOB_SEVERAL) == 0)
        return true;
    if ((s->flags & JOB_SCRIPT) != 0 || spec_decode(s->spec, &spec) < 0 ||
        spec_ranks(&spec) != s->procs)
        return false;
    while ((r = crate_next(s->files, &at, &p)) == 1)
        for (uint32_t i = 0; crate_range_load(&p, i, &ranks); i++) {
            all += ranks.count;
            if ((uint64_t)ranks.first + ranks.count > s->procs || all > s->procs)
                return false; /* every rank runs one program, and looking for its node takes time */
        }
    return r == 0;
}

int why_not(struct mm *m, const struct message_submit *s, struct text *why) {
    struct size size = {.nodes = s->nodes, .ppn = s->ppn, .procs = s->procs};
    bool script = (s->flags & JOB_SCRIPT) != 0 || s->kind == JOB_ALLOC;
    if (s->nodes == 0 || s->ppn == 0 || s->procs == 0 || (!script && !is_whole(s, &size))) {
        text_str(why, "the size contradicts itself");
        return -EINVAL;
    }
    if (!is_assigned(s)) {
        text_str(why, "what is said of its programs contradicts its size");
        return -EINVAL;
    }
    if (s->kind == JOB_STEP)
        return judge_step(m, s, why);
    if (s->reservation.len > 0 && reserve_find(m, s->reservation, wall(m)) == 0) {
        text_str(why, "there is no reservation ");
        text_strn(why, (const char *)s->reservation.at, s->reservation.len);
        text_str(why, " (any more); see: storm reserve");
        return -ENOENT;
    }
    int r = waits_judge(m, s, why);
    if (r == 0)
        r = judge_wish(m, s, why);
    if (r == 0 && (s->flags & JOB_SECTIONS) != 0)
        r = sections_judge(m, s, why);
    else if (r == 0)
        r = needs_judge(m, s, why);
    if (r == 0 && (s->flags & (JOB_FAMILY | JOB_CLASSES)) != 0)
        r = family_judge(m, s, why);
    if (r < 0 || queue_could(m, s))
        return r;
    text_str(why, "needs ");
    text_u64(why, s->nodes);
    text_str(why, s->nodes == 1 ? " node with " : " nodes with ");
    text_u64(why, s->ppn);
    text_str(why, s->ppn == 1 ? " processor" : " processors");
    const struct reservation *inside = reserve_of(m, reserve_find(m, s->reservation, wall(m)));
    text_str(why, inside != NULL ? "; the reservation has " : "; the cluster has ");
    text_u64(why, inside != NULL ? nodeset_count(&inside->nodes) : roster_count(&m->roster));
    text_str(why, " with ");
    say_widths(m, why);
    uint32_t memory = job_memory_of(job_memory(s), s->ppn);
    if (memory > 0) {
        text_str(why, "; it takes ");
        text_u64(why, memory);
        text_str(why, " MiB of memory on each");
    }
    return -ENOSPC;
}

/* ---- waiting ---- */

/* The nodes of a set, or "17 nodes" if there are many. */
static void name_set(struct mm *m, const struct nodeset *set, struct text *out) {
    char names[64];
    size_t len = roster_format(&m->roster, set, names, sizeof names);
    if (len < sizeof names) {
        text_strn(out, names, len);
        return;
    }
    text_u64(out, nodeset_count(set));
    text_str(out, " nodes");
}

void why_count(struct text *out, uint64_t count, const char *noun) {
    text_u64(out, count);
    text_str(out, noun);
    if (count != 1)
        text_char(out, 's');
}

/* Of the calendar; 0: never. */
static uint64_t calendar(const struct mm *m, uint64_t tick) {
    return tick == STORM_NEVER ? 0 : tick + m->wall_ns;
}

/* Nodes that it insists on and that cannot be used. */
static bool why_nodes(struct mm *m, const struct job *j, struct text *why) {
    const struct wish *w = job_wish(m, j);
    bool down = false, drained = false, gone = false;
    if (w == NULL || nodeset_empty(&w->on))
        return false;
    nodeset_clear(&m->work);
    NODESET_EACH (i, &w->on) {
        if (i >= m->config.limits.nodes || node_usable(m, i))
            continue;
        nodeset_add(&m->work, i);
        gone = gone || !roster_taken(&m->roster, i);
        drained = drained || m->nodes[i].drained;
        down = down || !(m->nodes[i].member && m->nodes[i].announced);
    }
    if (nodeset_count(&w->on) - nodeset_count(&m->work) >= j->nodes)
        return false;
    text_str(why, "waits for ");
    name_set(m, &m->work, why);
    text_str(why, nodeset_count(&m->work) == 1 ? ", which is " : ", which are ");
    text_str(why, gone              ? "not in the cluster any more"
                  : down && drained ? "down or drained"
                  : down            ? "down"
                  : drained         ? "drained"
                            : "to have another number of processors as soon as nothing runs there");
    return true;
}

static void why_away(const struct mm *m, struct text *why) {
    uint32_t away = 0;
    NODESET_EACH (i, &m->taken)
        away += !node_serves(m, i);
    if (away == 0)
        return;
    text_str(why, "; ");
    why_count(why, away, " node");
    text_str(why, away == 1 ? " is drained or down" : " are drained or down");
}

/* One that is lent: enough nodes would do for it if their owners were away. */
static bool why_owners(struct mm *m, const struct job *j, struct text *why) {
    const struct court_order o = queue_order(m, j);
    if ((j->flags & JOB_LENT) == 0 || nodeset_empty(&m->owners.barred))
        return false;
    nodeset_clear(&m->work);
    NODESET_EACH (n, &m->owners.barred) {
        uint32_t free = court_node_pes_of(m->court, n) - court_node_used(m->court, 0, n);
        if (node_usable(m, n) && free >= j->ppn && (o.meets == NULL || nodeset_has(o.meets, n)) &&
            (o.only == NULL || nodeset_empty(o.only) || nodeset_has(o.only, n)) &&
            (o.exclude == NULL || !nodeset_has(o.exclude, n)))
            nodeset_add(&m->work, n);
    }
    if (nodeset_count(&m->work) < o.nodes)
        return false;
    text_str(why,
             nodeset_count(&m->work) == 1 ? "waits for the owner of " : "waits for owners of ");
    name_set(m, &m->work, why);
    text_str(why, " to be away");
    return true;
}

/* A reservation of others is in its way. */
static void why_reserved(struct mm *m, const struct job *j, const struct reservation *r,
                         struct text *why) {
    bool begun = r->from_ns <= wall(m);
    const char *are = nodeset_count(&r->nodes) == 1 ? " is reserved" : " are reserved";
    text_str(why, begun              ? "waits for "
                  : j->limit_ns != 0 ? "would not be over when "
                                     : "has no time limit (--time), and ");
    name_set(m, &r->nodes, why);
    text_str(why, begun ? ", which" : "");
    text_str(why, are);
    text_str(why, begun ? " until " : " from ");
    text_time(why, begun ? r->to_ns : r->from_ns);
    text_str(why, begun ? " (" : " on (");
    text_strn(why, r->name, r->name_len);
    text_char(why, ')');
}

/* Whose end it waits for. */
static void why_ends(struct mm *m, const struct court_outlook *o, struct text *why) {
    const struct job *ends = o->ends == 0 ? NULL : job_find(m, (uint32_t)o->ends);
    if (ends != NULL && ends->seat != COURT_NONE) {
        text_str(why, "; job ");
        text_u64(why, o->ends);
        text_str(why, " ends by ");
        text_time(why, calendar(m, court_job(m->court, ends->seat)->ends));
    } else if (o->endless != 0) {
        text_str(why, "; job ");
        text_u64(why, o->endless);
        text_str(why, " has no time limit, so nobody knows when");
    }
}

static void why_places(struct mm *m, const struct job *j, const struct court_outlook *o,
                       struct text *why) {
    uint32_t slots = slices_share(m);
    const struct wish *w = job_wish(m, j);
    const struct reservation *r = o->window == 0 ? NULL : reserve_of(m, o->window);
    if (why_nodes(m, j, why))
        return;
    if (r != NULL) {
        why_reserved(m, j, r, why);
        return;
    }
    if (o->lacks > 0 && why_owners(m, j, why))
        return;
    if (o->lacks > 0) {
        text_str(why, "waits for ");
        why_count(why, o->lacks, " more processor");
        if (w != NULL && !nodeset_empty(&w->on)) {
            text_str(why, " on ");
            name_set(m, &w->on, why);
        }
        if (needs_of(m, j) != NULL) {
            text_str(why, " of nodes");
            needs_why(needs_of(m, j), why);
        }
        if (slots > 1) {
            text_str(why, " in one of ");
            why_count(why, slots, " slot");
        }
    } else if (o->lacks_memory > 0) {
        text_str(why, "waits for memory on ");
        why_count(why, o->lacks_memory, " more node");
    } else {
        text_str(why, "is about to start");
    }
    why_ends(m, o, why);
    why_away(m, why);
}

/* One that names a reservation. */
static void why_inside(struct mm *m, const struct job *j, const struct court_outlook *o,
                       struct text *why) {
    const struct reservation *r = reserve_of(m, j->window);
    if (r == NULL) {
        text_str(why, "its reservation is over");
        return;
    }
    text_str(why, "waits for ");
    if (r->from_ns <= wall(m) && o->lacks > 0) {
        why_count(why, o->lacks, " more processor");
        text_str(why, " in ");
    }
    text_str(why, "reservation ");
    text_strn(why, r->name, r->name_len);
    if (r->from_ns > wall(m)) {
        text_str(why, ", which begins at ");
        text_time(why, r->from_ns);
        return;
    }
    why_ends(m, o, why);
}

/* Somebody who is not the head: of the queue's order, or of what it lacks. */
static void why_behind(struct mm *m, const struct job *j, const struct job *head,
                       const struct court_outlook *o, struct text *why) {
    bool in_order = court_policy(m->court) == &policy_fcfs;
    struct court_outlook first;
    if (!in_order && (o->lacks > 0 || o->window != 0)) {
        why_places(m, j, o, why);
        return;
    }
    text_str(why, in_order ? "waits behind job " : "would be in the way of job ");
    text_u64(why, head->id);
    text_str(why, ", which ");
    court_outlook(m->court, head->seat, &first);
    why_places(m, head, &first, why);
}

/* Of many, in a list: what is known already. */
static uint64_t why_short(struct mm *m, const struct job *j, const struct job *head,
                          struct text *why) {
    struct court_outlook o;
    if (j->window != 0) {
        o = (struct court_outlook){0};
        why_inside(m, j, &o, why);
    } else if (head != j) {
        text_str(why, "waits behind job ");
        text_u64(why, head->id);
    } else {
        court_outlook(m->court, j->seat, &o);
        why_places(m, j, &o, why);
        return calendar(m, o.at);
    }
    return calendar(m, court_job(m->court, j->seat)->reserved);
}

static uint64_t why_queued(struct mm *m, const struct job *j, enum why how, struct text *why) {
    uint32_t seat = court_head(m->court);
    const struct job *head =
        seat == COURT_NONE ? j : job_find(m, (uint32_t)court_job(m->court, seat)->id);
    struct court_outlook o;
    if (how == WHY_SHORT)
        return why_short(m, j, head, why);
    court_outlook(m->court, j->seat, &o);
    if (j->window != 0)
        why_inside(m, j, &o, why);
    else if (head != j)
        why_behind(m, j, head, &o, why);
    else
        why_places(m, j, &o, why);
    return calendar(m, o.at);
}

/* One that is suspended by us, not by its user. */
static void why_called(const struct mm *m, const struct job *j, struct text *why) {
    const struct running *r = job_running(m, j);
    if (r == NULL || !r->called)
        return;
    enum reason reason = loans_reason(m, r);
    bool there = nodeset_intersects(&r->set, &m->owners.reclaimed);
    text_str(why, there                      ? "the owner of its machine is there"
                  : reason == REASON_OWNER   ? "the owner of its machine may be there"
                  : reason == REASON_DRAINED ? "its processors are lent, and their node is drained"
                                             : "its processors are lent, and others want them");
    if (r->vacate_at != 0) {
        text_str(why, "; it ends at ");
        text_time(why, calendar(m, r->vacate_at));
    }
}

uint64_t why_waits(struct mm *m, const struct job *j, enum why how, struct text *why) {
    if (j->state == STATE_SUSPENDED)
        why_called(m, j, why);
    if (j->state != STATE_QUEUED)
        return 0;
    if (j->kind == JOB_STEP) {
        text_str(why, "waits for room in allocation ");
        text_u64(why, j->inside);
    } else if (m->stopped) {
        text_str(why, "the cluster is going down");
    } else if (j->waits) {
        waits_why(m, j, why);
    } else if (j->given) {
        text_str(why, "is about to start");
    } else if (j->seat == COURT_NONE) {
        text_str(why, "needs more than the cluster has");
    } else {
        return why_queued(m, j, how, why);
    }
    return 0;
}
