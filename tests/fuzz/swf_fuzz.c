/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of traces: every text is jobs, remarks, or lines that are refused with a reason; and what was
 * read can be put in order and made to fit. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "sim/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct workload w;
    workload_init(&w);
    while (size > 0) {
        char why[WORKLOAD_WHY_MAX] = "";
        const uint8_t *end = memchr(data, '\n', size);
        size_t len = end ? (size_t)(end - data) : size;
        int r = workload_line(&w, (struct bytes){data, len}, why);
        ASSERT(r == 0 || (r == -EINVAL && why[0] != '\0' && strlen(why) < sizeof why));
        data += end ? len + 1 : len;
        size -= end ? len + 1 : len;
    }
    ASSERT(workload_sort(&w) == 0);
    workload_fit(&w, 100);
    for (size_t i = 0; i < w.count; i++) {
        const struct workload_job *j = &w.jobs[i];
        ASSERT(j->pes >= 1 && j->pes <= 100 && j->run >= 1 && j->estimate >= j->run);
        ASSERT(i == 0 || w.jobs[i - 1].submit <= j->submit);
    }
    workload_fini(&w);
    return 0;
}
