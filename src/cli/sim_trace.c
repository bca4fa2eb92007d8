/* SPDX-License-Identifier: MIT */
/* storm sim: where its jobs come from. */
#include <errno.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/lines.h"
#include "cli/sim.h"

_Static_assert((int)LINES_WHY_MAX == (int)WORKLOAD_WHY_MAX, "one reason fits into the other");

static int take(void *context, struct bytes line, char why[LINES_WHY_MAX]) {
    return workload_line(context, line, why);
}

int sim_read(const struct sim_request *q, struct workload *w) {
    struct lines lines = {
        .path = q->trace, .command = "sim", .strict = q->strict, .take = take, .context = w};
    int status = lines_read(&lines);
    w->lines = lines.count;
    w->malformed = lines.malformed;
    if (status == 0 && workload_sort(w) < 0)
        return complain("sim", "%s", strerror(ENOMEM)), STATUS_STORM;
    if (status == 0 && w->count == 0)
        return complain(q->trace,
                        "there is no job in it; it should be in the Standard Workload Format");
    return status;
}
