/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of workload files: every text is jobs, remarks, or lines that are refused with a reason; words of a job are as
 * many as it says. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/jobfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct jobfile r;
    char **words = reallocarray(NULL, JOBFILE_WORDS_MAX + 1, sizeof *words);
    ASSERT(words != NULL);
    jobfile_init(&r);
    while (size > 0) {
        char why[JOBFILE_WHY_MAX] = "";
        const uint8_t *end = memchr(data, '\n', size);
        size_t len = end ? (size_t)(end - data) : size;
        int tells = jobfile_tells_trace((struct bytes){data, len});
        ASSERT(tells == 0 || tells == 1 || tells == -EAGAIN);
        int e = jobfile_line(&r, (struct bytes){data, len}, why);
        ASSERT(e == 0 || (e == -EINVAL && why[0] != '\0' && strlen(why) < sizeof why));
        data += end ? len + 1 : len;
        size -= end ? len + 1 : len;
    }
    jobfile_sort(&r);
    for (size_t i = 0; i < r.count; i++) {
        jobfile_words(&r, i, words);
        ASSERT(r.jobs[i].words >= 1 && r.jobs[i].words < JOBFILE_WORDS_MAX);
        ASSERT(words[r.jobs[i].words] == NULL);
        ASSERT(words[r.jobs[i].words - 1] < r.text + r.text_len);
        ASSERT(i == 0 || r.jobs[i - 1].arrival_ns <= r.jobs[i].arrival_ns);
    }
    jobfile_fini(&r);
    free(words);
    return 0;
}
