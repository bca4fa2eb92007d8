/* SPDX-License-Identifier: MIT */
/* Colour and progress: see terminal.h. */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool terminal_is(FILE *stream) {
    return isatty(fileno(stream)) == 1;
}

static bool wants_colours(FILE *stream) {
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return terminal_is(stream) && (no == NULL || *no == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

/* Asked for each word that may have one: found out once. */
static bool colours(FILE *stream) {
    static int known[2]; /* of stdout, stderr; 0: not yet */
    if (stream != stdout && stream != stderr)
        return wants_colours(stream);
    int *k = &known[stream == stderr];
    if (*k == 0)
        *k = wants_colours(stream) ? 1 : -1;
    return *k > 0;
}

const char *terminal_tint(FILE *stream, enum tint tint) {
    static const char *const codes[] = {[TINT_NONE] = "\033[0m",
                                        [TINT_GOOD] = "\033[32m",
                                        [TINT_BAD] = "\033[1;31m",
                                        [TINT_HEAD] = "\033[1m",
                                        [TINT_FAINT] = "\033[2m"};
    return colours(stream) ? codes[tint] : "";
}

void terminal_progress(const char *words) {
    if (!terminal_is(stderr))
        return;
    fflush(stdout);
    fprintf(stderr, "\r\033[K%s", words ? words : "");
    fflush(stderr);
}
