/* SPDX-License-Identifier: MIT */
/* Output and input on their way through: from nodes to the client that takes it, and back.
 *
 * Nothing is kept here. Output that no client takes is dropped: the launcher has it, and sends it again
 * when somebody follows the job. */
#include "mm/inside.h"
#include "rm/say.h"
#include "sched/map.h"

void stream_up(struct mm *m, const struct input_message *in) {
    if (in->body.len < 8)
        return;
    uint64_t run = load_le64(in->body.at);
    const struct job *j = job_find(m, run_job(run));
    uint32_t link = j == NULL ? 0 : client_of_output(m, j);
    if (link != 0)
        client_pass(m, link, in);
}

/* The node on which this rank is; NO_NODE if there is none. */
static uint32_t node_of(struct mm *m, const struct job *j, const struct running *r, uint32_t rank) {
    if (rank >= j->procs)
        return NO_NODE;
    if (sections_of(m, j) != NULL)
        return sections_node(m, j, r, rank);
    struct map map = job_placing(m, j, r);
    return nodeset_at(&r->set, map_place(&map, rank));
}

/* Are these ranks where this is told from? Of a list, which is not kept here, only that it is a node of the run. */
static bool are_there(struct mm *m, const struct job *j, const struct running *r, uint32_t node,
                      struct bytes rows) {
    if (!nodeset_has(&r->set, node))
        return false;
    if ((j->flags & JOB_LISTED) != 0)
        return true;
    for (size_t at = 0; at < rows.len; at += PIDS_ROW_BYTES)
        if (node_of(m, j, r, load_le32(rows.at + at)) != node)
            return false;
    return true;
}

/* To who has asked, by the number of its link: should that be another's by now, it does not follow this job. Debuggers
 * attach to what they are told, so nobody tells of others' processes. */
void stream_pids(struct mm *m, const struct input_message *in) {
    union message c;
    if (message_decode(in->type, in->body, m->scratch, &c) < 0 ||
        !client_follows(m, c.pids.asker, run_job(c.pids.run)))
        return;
    const struct job *j = job_find(m, run_job(c.pids.run));
    const struct running *r = j == NULL ? NULL : job_running(m, j);
    if (r != NULL && r->run == c.pids.run && are_there(m, j, r, in->peer, c.pids.rows))
        client_pass(m, c.pids.asker, in);
}

/* What nobody has taken comes again. A short run may have written it before it was known to be on all its nodes. */
void stream_again(struct mm *m, struct running *r) {
    union message c = {.command = {.run = r->run, .verb = VERB_RESEND}};
    r->missed = r->phase < PHASE_GOING;
    if (!r->missed)
        say_down(m->out, &r->set, MESSAGE_COMMAND, &c, (struct bytes){0});
}

void stream_down(struct mm *m, const struct input_message *in) {
    union message c;
    if (message_decode(in->type, in->body, m->scratch, &c) < 0)
        return;
    bool taken = in->type == MESSAGE_TAKEN;
    uint64_t run = taken ? c.taken.run : c.typed.run;
    uint32_t rank = taken ? c.taken.rank : c.typed.rank;
    const struct job *j = job_find(m, run_job(run));
    const struct running *r = j == NULL ? NULL : job_running(m, j);
    if (r == NULL || r->run != run || client_of_output(m, j) != in->link)
        return;
    nodeset_clear(&m->work);
    if (rank == RANK_ALL || (j->flags & JOB_LISTED) != 0) { /* the list is not kept here */
        nodeset_copy(&m->work, &r->set);
    } else {
        uint32_t node = node_of(m, j, r, rank);
        if (node == NO_NODE)
            return;
        nodeset_add(&m->work, node);
    }
    struct effect *e = effects_add(m->out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_MAIL,
                                    .way = MAIL_DOWN,
                                    .set = effects_copy_set(m->out, &m->work),
                                    .type = in->type,
                                    .body = in->body};
}
