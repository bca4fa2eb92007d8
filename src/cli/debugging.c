/* SPDX-License-Identifier: MIT */
/* --debug: see debugging.h. */
#include "cli/debugging.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/words.h"
#include "cli/complain.h"
#include "cli/program.h"
#include "cli/wish.h"

/* ---- which ranks ---- */

static int read_ranks(struct order *o, const char *text) {
    struct bytes *ranks = &o->spec.debugged;
    uint8_t *room = o->debugging.ranks;
    uint32_t procs = o->size.procs;
    if (text == NULL) {
        store_le32(room, 0);
        store_le32(room + 4, procs - 1);
        *ranks = bytes_of(room, RANKS_RANGE_BYTES);
        return 0;
    }
    int r = ranks_parse(text, room, ranks);
    if (r == -E2BIG)
        return complain("--ranks", "at most %d ranges of ranks", RANKS_RANGES_MAX);
    if (r < 0)
        return complain("--ranks", "\"%.40s\" is no list of ranks; for example 0,3-5", text);
    if (ranks_highest(*ranks) < procs)
        return 0;
    complain("--ranks", "there is no rank %" PRIu32 " among %" PRIu32 " process%s",
             ranks_highest(*ranks), procs, procs == 1 ? "" : "es");
    return STATUS_STORM;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_gdb(const char *debugger) {
    const char *name = base_name(debugger);
    size_t len = strlen(name);
    return strcmp(name, "gdb") == 0 || strncmp(name, "gdb-", 4) == 0 ||
           (len > 4 && strcmp(name + len - 4, "-gdb") == 0);
}

const char *debugging_bridge(const char *debugger) {
    return is_gdb(debugger) ? "--args" : strcmp(base_name(debugger), "lldb") == 0 ? "--" : "";
}

/* Nobody is to type anything. */
static bool is_batch(const char *words) {
    return strstr(words, "-batch") != NULL;
}

/* The first word, without what may stand behind it. */
static bool wants_keys(const char *words) {
    char first[256];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(words, " \t"), words);
    return is_gdb(first) && !is_batch(words);
}

/* Who sits at a terminal wants to type, and can to one only. */
static void share_out(struct order *o, struct wish *w) {
    struct debugging *d = &o->debugging;
    bool one = ranks_count(o->spec.debugged) == 1, person = isatty(STDIN_FILENO) == 1;
    if (one) {
        uint32_t rank = ranks_lowest(o->spec.debugged);
        snprintf(w->debugged, sizeof w->debugged, "%" PRIu32, rank);
        w->input = w->input != NULL ? w->input : w->debugged;
        w->pty = w->pty ||
                 (person && isatty(STDOUT_FILENO) == 1 && w->output == NULL && !is_batch(w->debug));
        o->spec.terminal_rank = w->pty ? rank : 0;
        return;
    }
    const char *display = getenv("DISPLAY");
    bool keys = person && wants_keys(w->debug);
    d->windows = keys && display != NULL && *display != '\0';
    d->served = keys && !d->windows;
    w->input = w->input != NULL ? w->input : "none";
    w->label = true;
}

int debugging_ranks(struct order *o, struct wish *w) {
    if (w->debug == NULL)
        return w->ranks == NULL
                   ? 0
                   : complain("--ranks", "it says what --debug is for: --debug gdb --ranks %s",
                              w->ranks);
    int r = read_ranks(o, w->ranks);
    if (r == 0)
        share_out(o, w);
    return r;
}

/* ---- what starts them ---- */

static void add(struct order *o, const char *word) {
    struct bytes *list = &o->spec.debugger;
    size_t len = strlen(word) + 1;
    ASSERT(list->len + len <= sizeof o->debugging.strings);
    memcpy(o->debugging.strings + list->len, word, len);
    *list = bytes_of(o->debugging.strings, list->len + len);
}

/* By the path that the processes have. */
static int add_program(struct order *o, const char *name) {
    char file[DEBUGGER_BYTES];
    const char *path = surroundings_get(&o->around, "PATH");
    int r = program_find(name, name, o->folder, path != NULL ? path : "", file, sizeof file);
    if (r == 0)
        add(o, file);
    return r;
}

static int add_words(struct order *o, char **words) {
    bool bridged = false;
    const char *bridge = debugging_bridge(words[0]);
    int r = add_program(o, words[0]);
    for (char **w = words + 1; r == 0 && *w != NULL; w++) {
        bridged = bridged || strcmp(*w, bridge) == 0;
        add(o, *w);
    }
    if (r == 0 && !bridged && *bridge != '\0')
        add(o, bridge);
    return r;
}

static int add_server(struct order *o) {
    int r = add_program(o, "gdbserver");
    if (r != 0)
        return r;
    add(o, "--once");
    add(o, ":0");
    complain(NULL, "several processes cannot share this terminal, and DISPLAY is not set: each "
                   "waits for: gdb -ex \"target remote HOST:PORT\"");
    return 0;
}

int debugging_command(struct order *o, const struct wish *w) {
    char text[DEBUGGER_BYTES], *words[DEBUGGER_WORDS + 1];
    if (w->debug == NULL)
        return 0;
    if (o->debugging.served)
        return add_server(o);
    if (snprintf(text, sizeof text, "%s", w->debug) >= (int)sizeof text)
        return complain("--debug", "that is too long");
    int count = words_split(text, words, DEBUGGER_WORDS);
    if (count == -E2BIG)
        return complain("--debug", "more than %d words", DEBUGGER_WORDS);
    if (count <= 0)
        return complain("--debug",
                        count == 0 ? "which debugger? for example gdb" : "a quote is not closed");
    int r = o->debugging.windows ? add_program(o, "xterm") : 0;
    if (r == 0 && o->debugging.windows)
        add(o, "-e");
    return r == 0 ? add_words(o, words) : r;
}
