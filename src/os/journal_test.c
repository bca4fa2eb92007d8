/* SPDX-License-Identifier: MIT */
/* Tests of the durable log: what it keeps, what it tells again, what it refuses. */
#include "os/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "tap.h"

enum { KEPT = 4096, WORDS = 24, TURN_MS = 20000 };

static const uint64_t ours[2] = {11, 22};

/* ---- a stage: a journal in a folder, and what it has told ---- */

struct stage {
    char folder[64];
    struct loop loop;
    struct journal *journal;
    const struct life_log *log;
    uint64_t ticket; /* the last that was given */
    uint64_t logged; /* the last that was told */
    uint32_t tellings, refused;
    uint64_t fetched;
    char body[WORDS];
};

static void on_logged(void *context, uint64_t ticket, int error) {
    struct stage *s = context;
    s->tellings++;
    if (error != 0) {
        s->refused++;
        CHECK_EQ(error, -ENOSPC);
    }
    s->logged = ticket;
}

static void on_fetched(void *context, uint64_t ticket, struct bytes body) {
    struct stage *s = context;
    s->fetched = ticket;
    snprintf(s->body, sizeof s->body, "%.*s", (int)body.len, (const char *)body.at);
}

static bool begin(struct stage *s) {
    int error = 0;
    s->journal = journal_open(s->folder, ours, &error);
    if (!CHECK(s->journal != NULL))
        return false;
    s->log = journal_log(s->journal);
    return true;
}

static bool attach(struct stage *s) {
    loop_init(&s->loop);
    return CHECK_EQ(s->log->attach(s->log->self, &s->loop, on_logged, on_fetched, s), 0);
}

static bool make(struct stage *s) {
    *s = (struct stage){.folder = "/tmp/storm-journal-XXXXXX"};
    return CHECK(mkdtemp(s->folder) != NULL) && begin(s);
}

static void end(struct stage *s) {
    journal_close(s->journal);
    loop_fini(&s->loop);
}

static void sweep(struct stage *s) {
    static const char *const names[] = {"state.db", "state.db-wal", "state.db-shm", "state.lock",
                                        "reserve"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", s->folder, names[i]);
        unlink(path);
    }
    CHECK_EQ(rmdir(s->folder), 0); /* it has left nothing else */
}

static void append(struct stage *s, uint64_t key, const char *words, bool opens, bool closes) {
    struct effect_log e = {.ticket = ++s->ticket,
                           .key = key,
                           .opens = opens,
                           .closes = closes,
                           .body = bytes_of(words, strlen(words))};
    s->log->append(s->log->self, &e);
}

static void settle(struct stage *s) {
    s->log->commit(s->log->self);
    while (s->logged < s->ticket)
        loop_turn(&s->loop, TURN_MS);
}

/* ---- what is replayed ---- */

struct seen {
    uint32_t count;
    uint64_t keys[KEPT];
    bool over[KEPT];
    char words[KEPT][WORDS];
};

static struct seen seen;

static void on_event(void *context, uint64_t key, bool over, struct bytes body) {
    struct seen *to = context;
    if (to->count >= KEPT)
        return;
    to->keys[to->count] = key;
    to->over[to->count] = over;
    snprintf(to->words[to->count++], WORDS, "%.*s", (int)body.len, (const char *)body.at);
}

static void replay(struct stage *s) {
    seen.count = 0;
    CHECK_EQ(s->log->replay(s->log->self, on_event, &seen), 0);
}

static bool is(uint32_t i, uint64_t key, const char *words, bool over) {
    return i < seen.count && seen.keys[i] == key && seen.over[i] == over &&
           strcmp(seen.words[i], words) == 0;
}

/* ---- tests ---- */

static void test_empty(void) {
    struct stage s;
    if (!make(&s))
        return;
    replay(&s);
    CHECK_EQ(seen.count, 0);
    journal_close(s.journal);
    CHECK(begin(&s));
    replay(&s);
    CHECK_EQ(seen.count, 0);
    journal_close(s.journal);
    sweep(&s);
}

static void test_replay(void) {
    struct stage s;
    if (!make(&s) || !attach(&s))
        return;
    append(&s, 7, "seven", true, false);
    append(&s, 8, "eight", true, false);
    append(&s, 7, "on seven", false, false);
    settle(&s);
    append(&s, 8, "eight is over", false, true);
    append(&s, (uint64_t)1 << 48, "drained", true, false);
    settle(&s);
    end(&s);
    CHECK(begin(&s));
    replay(&s); /* in the order in which it happened; what was closed last too */
    CHECK_EQ(seen.count, 5);
    CHECK(is(0, 7, "seven", false) && is(1, 8, "eight", false) && is(2, 7, "on seven", false));
    CHECK(is(3, 8, "eight is over", false) && is(4, (uint64_t)1 << 48, "drained", false));
    journal_close(s.journal);
    sweep(&s);
}

/* Keys that are over for long are not told any more, but the highest is. */
static void test_long_history(void) {
    struct stage s;
    if (!make(&s) || !attach(&s))
        return;
    append(&s, 9000, "highest", true, true);
    append(&s, 1, "open", true, false);
    for (uint64_t key = 2; key < 2 + 4 * LOG_OVER_KEPT; key++)
        append(&s, key, "short", true, true);
    settle(&s);
    end(&s);
    CHECK(begin(&s));
    replay(&s);
    CHECK(seen.count >= LOG_OVER_KEPT + 2 && seen.count <= 2 * LOG_OVER_KEPT + 2);
    CHECK(is(0, 9000, "highest", true));
    CHECK(is(1, 1, "open", false));
    CHECK(is(seen.count - 1, 1 + 4 * LOG_OVER_KEPT, "short", false));
    journal_close(s.journal);
    sweep(&s);
}

/* Tickets are told in order, and what came in one turn or during one sync shares a commit. */
static void test_group_commit(void) {
    struct stage s;
    if (!make(&s) || !attach(&s))
        return;
    for (uint32_t i = 0; i < 1000; i++)
        append(&s, 1 + i, "one turn", true, true);
    settle(&s);
    CHECK_EQ(journal_commits(s.journal), 1);
    CHECK_EQ(s.tellings, 1);
    for (uint32_t i = 0; i < 2000; i++) { /* faster than any disk syncs */
        append(&s, 2000 + i, "many turns", true, true);
        s.log->commit(s.log->self);
        loop_turn(&s.loop, 0);
    }
    settle(&s);
    CHECK(journal_commits(s.journal) < 2000);
    CHECK_EQ(s.logged, 3000);
    CHECK_EQ(s.refused, 0);
    end(&s);
    sweep(&s);
}

static void fetch(struct stage *s, uint64_t key, uint64_t ticket) {
    s->log->fetch(s->log->self, ticket, key);
    while (s->fetched != ticket)
        loop_turn(&s->loop, TURN_MS);
}

static void test_fetch(void) {
    struct stage s;
    if (!make(&s) || !attach(&s))
        return;
    append(&s, 5, "first", true, false);
    append(&s, 5, "second", false, false);
    fetch(&s, 5, 100); /* also before it is durable */
    CHECK_STR(s.body, "first");
    settle(&s);
    append(&s, 5, "last", false, true);
    settle(&s);
    end(&s);
    CHECK(begin(&s) && attach(&s)); /* from the disk this time */
    fetch(&s, 5, 101);
    CHECK_STR(s.body, "first");
    fetch(&s, 6, 102);
    CHECK_STR(s.body, "");
    end(&s);
    sweep(&s);
}

/* What was acknowledged survives whoever wrote it: a child tells each ticket and is killed in the midst. */
static void write_until_killed(struct stage *s, int out) {
    if (!begin(s) || !attach(s))
        _exit(1);
    for (uint64_t key = 1;; key++) {
        uint64_t told = s->logged;
        append(s, key, "words", true, false);
        s->log->commit(s->log->self);
        loop_turn(&s->loop, key % 8 == 0 ? TURN_MS : 0);
        if (s->logged != told && write(out, &s->logged, sizeof s->logged) < 0)
            _exit(1);
    }
}

static void test_crash(void) {
    struct stage s = {.folder = "/tmp/storm-journal-XXXXXX"};
    uint64_t told = 0, last = 0;
    int ends[2];
    if (!CHECK(mkdtemp(s.folder) != NULL) || !CHECK(pipe2(ends, O_CLOEXEC) == 0))
        return;
    pid_t child = fork();
    if (child == 0)
        write_until_killed(&s, ends[1]);
    close(ends[1]);
    while (told < 200 && read(ends[0], &told, sizeof told) == sizeof told)
        continue;
    kill(child, SIGKILL);
    while (read(ends[0], &last, sizeof last) == sizeof last) /* what it said before it died */
        told = last;
    waitpid(child, NULL, 0);
    close(ends[0]);
    CHECK(told >= 200);
    CHECK(begin(&s));
    replay(&s);
    CHECK(seen.count >= told || seen.count == KEPT);
    bool whole = true;
    for (uint32_t i = 0; i < seen.count; i++)
        whole = whole && is(i, i + 1, "words", false);
    CHECK(whole); /* in order, without a gap */
    journal_close(s.journal);
    sweep(&s);
}

static void test_others(void) {
    static const uint64_t theirs[2] = {11, 23};
    struct stage s;
    int error = 0;
    char path[128];
    if (!make(&s))
        return;
    CHECK(journal_open(s.folder, ours, &error) == NULL);
    CHECK_EQ(error, -EBUSY);
    journal_close(s.journal);
    CHECK(journal_open(s.folder, theirs, &error) == NULL);
    CHECK_EQ(error, -EXDEV);
    CHECK(begin(&s)); /* asking has done no harm */
    journal_close(s.journal);
    snprintf(path, sizeof path, "%s/state.db", s.folder);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(write(fd, "this is no database at all, not even one that is damaged", 56) == 56);
    close(fd);
    CHECK(journal_open(s.folder, ours, &error) == NULL);
    CHECK_EQ(error, -EUCLEAN);
    CHECK_EQ(journal_check(s.folder), -EUCLEAN);
    CHECK(journal_open("/no/such/folder", ours, &error) == NULL);
    CHECK_EQ(error, -ENOENT);
    sweep(&s);
}

static void run_sql(const struct stage *s, const char *sql) {
    char path[128];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/state.db", s->folder);
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static bool on_none(void *context, uint64_t key, struct bytes body) {
    (void)context, (void)key, (void)body;
    return false;
}

/* What a newer version has written is refused, and stays as it is, whatever its tables are like. */
static void test_newer(void) {
    struct stage s;
    int error = 0;
    if (!make(&s))
        return;
    CHECK_EQ(journal_check(s.folder), 0);
    journal_close(s.journal);
    CHECK_EQ(journal_check(s.folder), 0);
    run_sql(&s, "UPDATE about SET value = 2 WHERE what = 'format'; DROP TABLE open;"
                "ALTER TABLE events RENAME TO deeds");
    CHECK(journal_open(s.folder, ours, &error) == NULL);
    CHECK_EQ(error, -ENOTSUP);
    CHECK_EQ(journal_check(s.folder), -ENOTSUP);
    CHECK_EQ(journal_history(s.folder, 0, on_none, NULL), -ENOTSUP);
    run_sql(&s, "SELECT * FROM deeds; CREATE TABLE events (nobody); CREATE TABLE open (nobody)");
    sweep(&s);
}

static bool on_past(void *context, uint64_t key, struct bytes body) {
    on_event(context, key, false, body);
    return seen.count < 3;
}

/* The past can be read beside a manager that writes, in the order of keys, from any of them on. */
static void test_history(void) {
    struct stage s;
    if (!make(&s) || !attach(&s))
        return;
    append(&s, 10, "ten", true, false);
    append(&s, 2, "two", true, false);
    append(&s, 10, "ten is over", false, true);
    settle(&s);
    seen.count = 0;
    CHECK_EQ(journal_history(s.folder, 0, on_past, &seen), 0);
    CHECK(is(0, 2, "two", false) && is(1, 10, "ten", false) && is(2, 10, "ten is over", false));
    seen.count = 0;
    CHECK_EQ(journal_history(s.folder, 9, on_past, &seen), 0); /* two is the highest below it */
    CHECK(is(0, 2, "two", false));
    seen.count = 0;
    CHECK_EQ(journal_history(s.folder, 4711, on_past, &seen), 0);
    CHECK(seen.count == 2 && is(0, 10, "ten", false));
    CHECK(journal_history("/no/such/folder", 0, on_past, &seen) < 0);
    end(&s);
    sweep(&s);
}

/* ---- a full disk ---- */

/* Fills what is left, as others would. */
static void fill(const char *folder) {
    char path[128], block[4096] = "";
    snprintf(path, sizeof path, "%s/others", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof block) > 0)
        continue;
    close(fd);
}

static void unfill(const char *folder) {
    char path[128];
    snprintf(path, sizeof path, "%s/others", folder);
    unlink(path);
}

/* Events are refused, ends get in; when there is room again everything does. */
static void test_full(void) {
    struct stage s = {.folder = "/tmp/storm-journal-XXXXXX"};
    static char large[64 * KIB];
    if (!CHECK(mkdtemp(s.folder) != NULL))
        return;
    if (!CHECK_EQ(mount("none", s.folder, "tmpfs", 0, "size=8m"), 0))
        return;
    if (!begin(&s) || !attach(&s))
        return;
    memset(large, 'x', sizeof large - 1);
    for (uint64_t key = 1; key <= 8; key++)
        append(&s, key, "open", true, false);
    settle(&s);
    fill(s.folder);
    for (uint64_t key = 100; s.refused == 0 && key < 300; key++) {
        append(&s, key, large, true, false);
        settle(&s);
    }
    CHECK(s.refused > 0);
    uint32_t refused = s.refused;
    for (uint64_t key = 1; key <= 8; key++)
        append(&s, key, "over", false, true);
    settle(&s);
    CHECK_EQ(s.refused, refused);
    unfill(s.folder);
    append(&s, 999, "room again", true, false);
    settle(&s);
    CHECK_EQ(s.refused, refused);
    end(&s);
    CHECK(begin(&s));
    replay(&s);
    uint32_t over = 0, again = 0;
    for (uint32_t i = 0; i < seen.count; i++) {
        over += strcmp(seen.words[i], "over") == 0;
        again += strcmp(seen.words[i], "room again") == 0;
    }
    CHECK(over == 8 && again == 1);
    journal_close(s.journal);
    CHECK_EQ(umount(s.folder), 0);
    CHECK_EQ(rmdir(s.folder), 0);
}

static bool may_mount(void) {
    char folder[] = "/tmp/storm-journal-XXXXXX";
    bool can = mkdtemp(folder) != NULL && mount("none", folder, "tmpfs", 0, "size=64k") == 0;
    if (can)
        umount(folder);
    rmdir(folder);
    return can;
}

int main(void) {
    TEST(test_empty);
    TEST(test_replay);
    TEST(test_long_history);
    TEST(test_group_commit);
    TEST(test_fetch);
    TEST(test_crash);
    TEST(test_others);
    TEST(test_newer);
    TEST(test_history);
    if (may_mount())
        TEST(test_full);
    else
        SKIP("test_full", "a small file system cannot be mounted here");
    return tap_finish();
}
