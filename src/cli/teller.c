/* SPDX-License-Identifier: MIT */
/* Stories told line by line: see teller.h. */
#include "cli/teller.h"

#include <inttypes.h>

#include "base/units.h"
#include "cli/complain.h"
#include "cli/terminal.h"

void teller_chapter(const struct teller *t, const char *words) {
    fprintf(t->out, "%s%s%s\n", terminal_tint(t->out, TINT_HEAD), words,
            terminal_tint(t->out, TINT_NONE));
}

__attribute__((format(printf, 3, 0))) static void print(const struct teller *t, uint64_t ns,
                                                        const char *format, va_list args) {
    uint64_t us = ns / NS_PER_US;
    fprintf(t->out, "%s%6" PRIu64 ".%03" PRIu64 " ms%s  ", terminal_tint(t->out, TINT_FAINT),
            us / 1000, us % 1000, terminal_tint(t->out, TINT_NONE));
    vfprintf(t->out, format, args);
}

void teller_line(const struct teller *t, uint64_t ns, const char *format, va_list args) {
    print(t, ns, format, args);
    fputc('\n', t->out);
    fflush(t->out);
}

bool teller_check(struct teller *t, uint64_t ns, bool holds, const char *format, va_list args) {
    t->checks++;
    t->failed += !holds;
    print(t, ns, format, args);
    fprintf(t->out, "  %s%s%s\n", terminal_tint(t->out, holds ? TINT_GOOD : TINT_BAD),
            holds ? "ok" : "FAILED", terminal_tint(t->out, TINT_NONE));
    fflush(t->out);
    return holds;
}

int teller_conclude(const struct teller *t) {
    if (t->failed > 0)
        fprintf(t->out, "%s%" PRIu32 " of %" PRIu32 " checks failed%s\n",
                terminal_tint(t->out, TINT_BAD), t->failed, t->checks,
                terminal_tint(t->out, TINT_NONE));
    else
        fprintf(t->out, "%sall %" PRIu32 " checks passed%s\n", terminal_tint(t->out, TINT_GOOD),
                t->checks, terminal_tint(t->out, TINT_NONE));
    return t->failed > 0 ? STATUS_FAILED : STATUS_OK;
}
