/* SPDX-License-Identifier: MIT */
/* The durable log: see journal.h.
 *
 * The loop's thread fills one batch while the writer commits the other. Results come back through a
 * list that the loop empties when the descriptor says so. */
#include "os/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/units.h"
#include "os/recent.h"

enum { PATH_BYTES = 4096, FORMAT = 1 };

#define RESERVE_BYTES MIB

/* The log that SQLite writes ahead is emptied into the database when it has this many pages. */
#define AHEAD_PAGES "4000"
#define AHEAD_BYTES (UINT64_C(4000) * (4096 + 24) + 32)

/* An event in a batch, its body behind it. */
struct event {
    uint64_t ticket;
    uint64_t key;
    uint32_t len;
    bool opens, closes;
};

struct batch {
    uint8_t *at;
    size_t len, cap;
};

/* What the writer has to tell: of events up to this ticket, or a body. */
struct result {
    struct result *next;
    uint64_t ticket;
    int error;
    bool fetched;
    size_t len;
    uint8_t body[];
};

struct wanted {
    uint64_t ticket, key;
};

struct journal {
    struct life_log log;
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *rollback, *insert, *open_key, *close_key, *trim, *first;
    char reserve[PATH_BYTES];
    int lock;
    bool spent; /* the reserve */
    struct recent recent;

    pthread_t thread;
    bool running;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    bool stop;
    struct batch filling, writing;
    size_t sealed;         /* of what is being filled: turns that are over */
    struct wanted *wanted; /* that must come from the disk */
    size_t wanted_count, wanted_cap;
    struct result *results, **results_end;
    uint64_t commits;
    uint64_t seq;    /* of the last event: ascends over all lives */
    uint64_t closed; /* keys, in this life */

    struct source done;
    struct loop *loop;
    void (*logged)(void *context, uint64_t ticket, int error);
    void (*fetched)(void *context, uint64_t ticket, struct bytes body);
    void *context;
};

static _Noreturn void crash(struct journal *j, const char *what) {
    fprintf(stderr, "storm: state.db: %s: %s; stopping, as what is written cannot be trusted\n",
            what, j->db == NULL ? "no database" : sqlite3_errmsg(j->db));
    abort();
}

/* ---- the writer ---- */

static void tell(struct journal *j, struct result *r) {
    uint64_t one = 1;
    r->next = NULL;
    pthread_mutex_lock(&j->mutex);
    *j->results_end = r;
    j->results_end = &r->next;
    pthread_mutex_unlock(&j->mutex);
    ssize_t n = write(j->done.fd, &one, sizeof one);
    ASSERT(n == sizeof one);
}

static struct result *result_new(uint64_t ticket, int error, size_t len) {
    struct result *r = calloc(1, sizeof *r + len);
    ASSERT(r != NULL);
    r->ticket = ticket;
    r->error = error;
    r->len = len;
    return r;
}

static void tell_logged(struct journal *j, uint64_t ticket, int error) {
    tell(j, result_new(ticket, error, 0));
}

static int run(sqlite3_stmt *s) {
    int r = sqlite3_step(s);
    sqlite3_reset(s);
    return r == SQLITE_DONE || r == SQLITE_ROW ? SQLITE_OK : r;
}

static int write_event(struct journal *j, const struct event *e, const uint8_t *body) {
    int r = SQLITE_OK;
    sqlite3_bind_int64(j->insert, 1, (sqlite3_int64)e->key);
    sqlite3_bind_int64(j->insert, 3, (sqlite3_int64)++j->seq);
    sqlite3_bind_blob(j->insert, 2, body, (int)e->len, SQLITE_STATIC);
    r = run(j->insert);
    if (r == SQLITE_OK && e->opens && !e->closes) {
        sqlite3_bind_int64(j->open_key, 1, (sqlite3_int64)e->key);
        r = run(j->open_key);
    }
    if (r == SQLITE_OK && e->closes) {
        sqlite3_bind_int64(j->close_key, 1, (sqlite3_int64)e->key);
        sqlite3_bind_int64(j->close_key, 2, (sqlite3_int64)j->seq);
        r = run(j->close_key);
        if (r == SQLITE_OK && ++j->closed % LOG_OVER_KEPT == 0)
            r = run(j->trim);
    }
    return r;
}

static size_t event_at(const struct batch *b, size_t at, struct event *ret) {
    memcpy(ret, b->at + at, sizeof *ret);
    return at + sizeof *ret + ret->len;
}

/* All events of the batch, or only those that close a key. */
static int write_batch(struct journal *j, const struct batch *b, bool closing) {
    struct event e;
    int r = run(j->begin);
    for (size_t at = 0, next; r == SQLITE_OK && at < b->len; at = next) {
        next = event_at(b, at, &e);
        if (!closing || e.closes)
            r = write_event(j, &e, b->at + at + sizeof e);
    }
    if (r == SQLITE_OK)
        r = run(j->commit);
    if (r != SQLITE_OK && sqlite3_get_autocommit(j->db) == 0)
        run(j->rollback);
    return r;
}

static bool disk_full(struct journal *j, int r) {
    int extended = sqlite3_extended_errcode(j->db);
    return r == SQLITE_FULL || (r == SQLITE_IOERR && extended == SQLITE_IOERR_WRITE &&
                                sqlite3_system_errno(j->db) == ENOSPC);
}

static bool make_reserve(struct journal *j) {
    int fd = open(j->reserve, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int r = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)RESERVE_BYTES);
    if (fd >= 0)
        close(fd);
    if (r != 0)
        unlink(j->reserve);
    return r == 0;
}

/* Ends must get in even now; the rest is refused. */
static void refuse_batch(struct journal *j, const struct batch *b) {
    struct event e;
    if (!j->spent)
        unlink(j->reserve);
    j->spent = true;
    int r = write_batch(j, b, true);
    if (r != SQLITE_OK && !disk_full(j, r))
        crash(j, "writing");
    for (size_t at = 0; at < b->len;) {
        at = event_at(b, at, &e);
        tell_logged(j, e.ticket, e.closes && r == SQLITE_OK ? 0 : -ENOSPC);
    }
}

static void write_out(struct journal *j, const struct batch *b) {
    struct event last = {0};
    int r = write_batch(j, b, false);
    if (r != SQLITE_OK && disk_full(j, r)) {
        refuse_batch(j, b);
        return;
    }
    if (r != SQLITE_OK)
        crash(j, "writing");
    j->commits++;
    if (j->spent && make_reserve(j))
        j->spent = false;
    for (size_t at = 0; at < b->len;)
        at = event_at(b, at, &last);
    tell_logged(j, last.ticket, 0);
}

static void look_up(struct journal *j, const struct wanted *w) {
    sqlite3_bind_int64(j->first, 1, (sqlite3_int64)w->key);
    size_t len = 0;
    const void *body = NULL;
    if (sqlite3_step(j->first) == SQLITE_ROW) {
        body = sqlite3_column_blob(j->first, 0);
        len = (size_t)sqlite3_column_bytes(j->first, 0);
    }
    struct result *r = result_new(w->ticket, 0, len);
    r->fetched = true;
    if (len > 0)
        memcpy(r->body, body, len);
    sqlite3_reset(j->first);
    tell(j, r);
}

static void add_bytes(struct batch *b, const void *from, size_t len) {
    size_t need = b->len + len;
    if (need > b->cap) {
        b->cap = need * 2 < 64 * KIB ? 64 * KIB : need * 2;
        b->at = realloc(b->at, b->cap);
        ASSERT(b->at != NULL);
    }
    memcpy(b->at + b->len, from, len);
    b->len = need;
}

/* What is sealed, with the mutex held; the turn that is under way stays. */
static struct batch take_batch(struct journal *j) {
    struct batch b = j->filling;
    j->filling = j->writing;
    j->filling.len = 0;
    if (b.len > j->sealed)
        add_bytes(&j->filling, b.at + j->sealed, b.len - j->sealed);
    b.len = j->sealed;
    j->sealed = 0;
    return b;
}

static void *writer(void *context) {
    struct journal *j = context;
    pthread_mutex_lock(&j->mutex);
    while (!j->stop || j->sealed > 0) {
        if (j->sealed == 0 && j->wanted_count == 0) {
            pthread_cond_wait(&j->work, &j->mutex);
            continue;
        }
        struct batch b = take_batch(j);
        struct wanted w = {0};
        if (j->wanted_count > 0)
            w = j->wanted[--j->wanted_count];
        pthread_mutex_unlock(&j->mutex);
        if (b.len > 0)
            write_out(j, &b);
        if (w.ticket != 0)
            look_up(j, &w);
        pthread_mutex_lock(&j->mutex);
        j->writing = b;
    }
    pthread_mutex_unlock(&j->mutex);
    return NULL;
}

/* ---- the loop's side ---- */

static void on_done(struct source *s, uint32_t events) {
    struct journal *j = CONTAINER_OF(s, struct journal, done);
    uint64_t count;
    (void)events;
    if (read(s->fd, &count, sizeof count) < 0)
        return;
    pthread_mutex_lock(&j->mutex);
    struct result *list = j->results;
    j->results = NULL;
    j->results_end = &j->results;
    pthread_mutex_unlock(&j->mutex);
    while (list != NULL) {
        struct result *r = list;
        list = r->next;
        if (r->fetched)
            j->fetched(j->context, r->ticket, bytes_of(r->body, r->len));
        else
            j->logged(j->context, r->ticket, r->error);
        free(r);
    }
}

static int attach(void *self, struct loop *loop,
                  void (*logged)(void *context, uint64_t ticket, int error),
                  void (*fetched)(void *context, uint64_t ticket, struct bytes body),
                  void *context) {
    struct journal *j = self;
    sigset_t all, before;
    j->loop = loop;
    j->logged = logged;
    j->fetched = fetched;
    j->context = context;
    int r = loop_add(loop, &j->done, EPOLLIN);
    if (r < 0)
        return r;
    sigfillset(&all); /* signals are the loop's affair */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(&j->thread, NULL, writer, j);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    j->running = r == 0;
    return r;
}

static void append(void *self, const struct effect_log *e) {
    struct journal *j = self;
    struct event head = {.ticket = e->ticket,
                         .key = e->key,
                         .len = (uint32_t)e->body.len,
                         .opens = e->opens,
                         .closes = e->closes};
    if (e->opens)
        recent_keep(&j->recent, e->key, e->body);
    pthread_mutex_lock(&j->mutex);
    add_bytes(&j->filling, &head, sizeof head);
    add_bytes(&j->filling, e->body.at, e->body.len);
    pthread_mutex_unlock(&j->mutex);
}

static void fetch(void *self, uint64_t ticket, uint64_t key) {
    struct journal *j = self;
    struct bytes body;
    if (recent_find(&j->recent, key, &body)) {
        struct result *r = result_new(ticket, 0, body.len);
        r->fetched = true;
        memcpy(r->body, body.at, body.len);
        tell(j, r);
        return;
    }
    pthread_mutex_lock(&j->mutex);
    if (j->wanted_count == j->wanted_cap) {
        j->wanted_cap = j->wanted_cap ? 2 * j->wanted_cap : 64;
        j->wanted = realloc(j->wanted, j->wanted_cap * sizeof *j->wanted);
        ASSERT(j->wanted != NULL);
    }
    j->wanted[j->wanted_count++] = (struct wanted){.ticket = ticket, .key = key};
    pthread_cond_signal(&j->work);
    pthread_mutex_unlock(&j->mutex);
}

static void commit(void *self) {
    struct journal *j = self;
    pthread_mutex_lock(&j->mutex);
    j->sealed = j->filling.len;
    if (j->sealed > 0)
        pthread_cond_signal(&j->work);
    pthread_mutex_unlock(&j->mutex);
}

typedef void replayed(void *context, uint64_t key, bool over, struct bytes body);

static int replay_rows(struct journal *j, const char *sql, bool over, replayed *event,
                       void *context) {
    sqlite3_stmt *s = NULL;
    int r = sqlite3_prepare_v2(j->db, sql, -1, &s, NULL);
    while (r == SQLITE_OK || r == SQLITE_ROW) {
        r = sqlite3_step(s);
        if (r == SQLITE_ROW)
            event(context, (uint64_t)sqlite3_column_int64(s, 0), over,
                  bytes_of(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1)));
    }
    sqlite3_finalize(s);
    return r == SQLITE_DONE ? 0 : -EUCLEAN;
}

static int replay(void *self, replayed *event, void *context) {
    int r = replay_rows(self,
                        "SELECT key, body FROM events WHERE key = (SELECT max(key) FROM events"
                        " WHERE key < 1 << 48) AND key NOT IN (SELECT key FROM open)"
                        " ORDER BY seq LIMIT 1",
                        true, event, context);
    if (r < 0)
        return r;
    return replay_rows(self,
                       "SELECT e.key, e.body FROM open o JOIN events e ON e.key = o.key"
                       " ORDER BY e.seq",
                       false, event, context);
}

/* ---- opening ---- */

static int ask_number(sqlite3 *db, const char *sql, int64_t *ret) {
    sqlite3_stmt *s = NULL;
    int r = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW)
        *ret = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return r == SQLITE_ROW ? 0 : r == SQLITE_DONE ? -ENOENT : -EUCLEAN;
}

/* What a newer STORM has written may mean something else, even where it looks the same: it is not touched. */
static int check_format(sqlite3 *db) {
    int64_t tables = 0, format = FORMAT;
    int r = ask_number(db, "SELECT count(*) FROM sqlite_master WHERE name = 'about'", &tables);
    if (r == 0 && tables > 0)
        r = ask_number(db, "SELECT value FROM about WHERE what = 'format'", &format);
    if (r == -ENOENT)
        return 0; /* whoever began it did not come far */
    return r < 0 ? r : format > FORMAT ? -ENOTSUP : 0;
}

static int make_tables(struct journal *j) {
    static const char sql[] =
        "PRAGMA journal_mode = WAL;"
        "PRAGMA synchronous = FULL;"
        "PRAGMA wal_autocheckpoint = " AHEAD_PAGES ";"
        "CREATE TABLE IF NOT EXISTS about (what TEXT PRIMARY KEY, value INTEGER);"
        "CREATE TABLE IF NOT EXISTS events (key INTEGER, seq INTEGER, body BLOB,"
        "  PRIMARY KEY (key, seq)) WITHOUT ROWID;"
        /* keys that are replayed: those that are not over, and the last that are */
        "CREATE TABLE IF NOT EXISTS open (key INTEGER PRIMARY KEY, closed INTEGER);"
        "CREATE INDEX IF NOT EXISTS closed ON open (closed) WHERE closed > 0;";
    return sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EUCLEAN;
}

static bool plenty(int fd) {
    struct statvfs s;
    return fstatvfs(fd, &s) == 0 && (uint64_t)s.f_bavail * s.f_frsize >= 16 * AHEAD_BYTES;
}

/* Fills up what is written ahead, with what SQLite takes for the end of it: a commit that makes a file
 * longer has to write where the file is, too, and takes twice as long. If it cannot be, that is all. */
static void make_way(const char *folder) {
    static const uint8_t zeros[64 * KIB];
    char path[PATH_BYTES];
    struct stat s = {0};
    snprintf(path, sizeof path, "%s/state.db-wal", folder);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    bool good = fstat(fd, &s) == 0 && plenty(fd);
    uint64_t at = (uint64_t)s.st_size;
    while (good && at < AHEAD_BYTES) {
        size_t len = AHEAD_BYTES - at < sizeof zeros ? (size_t)(AHEAD_BYTES - at) : sizeof zeros;
        ssize_t n = pwrite(fd, zeros, len, (off_t)at);
        good = n > 0;
        at += n > 0 ? (uint64_t)n : 0;
    }
    fdatasync(fd);
    close(fd);
}

/* Whose state it is; ours from now on if it is new. */
static int check_owner(struct journal *j, const uint64_t cluster[2]) {
    static const char *const words[] = {"format", "cluster0", "cluster1"};
    const int64_t ours[] = {FORMAT, (int64_t)cluster[0], (int64_t)cluster[1]};
    for (int i = 0; i < 3; i++) {
        char sql[128];
        int64_t value = 0;
        snprintf(sql, sizeof sql, "SELECT value FROM about WHERE what = '%s'", words[i]);
        int r = ask_number(j->db, sql, &value);
        if (r == -ENOENT) {
            snprintf(sql, sizeof sql, "INSERT INTO about VALUES ('%s', %lld)", words[i],
                     (long long)ours[i]);
            r = sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
        } else if (r == 0 && value != ours[i]) {
            r = -EXDEV;
        }
        if (r < 0)
            return r;
    }
    return 0;
}

/* Every life has numbers of its own, above those before. */
static int begin_life(struct journal *j) {
    int64_t lives = 0;
    static const char sql[] = "INSERT INTO about VALUES ('lives', 1)"
                              " ON CONFLICT (what) DO UPDATE SET value = value + 1";
    if (sqlite3_exec(j->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return -EIO;
    int r = ask_number(j->db, "SELECT value FROM about WHERE what = 'lives'", &lives);
    j->seq = (uint64_t)lives << 32;
    return r;
}

#define TRIM                                                                                    \
    "DELETE FROM open WHERE closed > 0 AND closed <= (SELECT closed FROM open WHERE closed > 0" \
    " ORDER BY closed DESC LIMIT 1 OFFSET 1024)"

_Static_assert(LOG_OVER_KEPT == 1024, "as TRIM says");

static int prepare(struct journal *j) {
    const struct {
        sqlite3_stmt **to;
        const char *sql;
    } all[] = {{&j->begin, "BEGIN IMMEDIATE"},
               {&j->commit, "COMMIT"},
               {&j->rollback, "ROLLBACK"},
               {&j->insert, "INSERT INTO events VALUES (?1, ?3, ?2)"},
               {&j->open_key, "INSERT OR IGNORE INTO open VALUES (?1, 0)"},
               {&j->close_key, "INSERT OR REPLACE INTO open VALUES (?1, ?2)"},
               {&j->trim, TRIM},
               {&j->first, "SELECT body FROM events WHERE key = ?1 ORDER BY seq LIMIT 1"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (sqlite3_prepare_v3(j->db, all[i].sql, -1, SQLITE_PREPARE_PERSISTENT, all[i].to, NULL) !=
            SQLITE_OK)
            return -EUCLEAN;
    return 0;
}

/* Two managers on one state would both give out the same numbers. */
static int take_lock(struct journal *j, const char *folder) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/state.lock", folder);
    j->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (j->lock < 0)
        return -errno;
    return flock(j->lock, LOCK_EX | LOCK_NB) < 0 ? -EBUSY : 0;
}

static int open_database(struct journal *j, const char *folder) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/state.db", folder);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path, &j->db, flags, NULL) != SQLITE_OK)
        return -EIO;
    sqlite3_extended_result_codes(j->db, 0);
    chmod(path, 0600);
    return check_format(j->db);
}

struct journal *journal_open(const char *folder, const uint64_t cluster[2], int *ret_error) {
    struct journal *j = calloc(1, sizeof *j);
    if (j == NULL) {
        *ret_error = -ENOMEM;
        return NULL;
    }
    j->log = (struct life_log){.self = j,
                               .attach = attach,
                               .replay = replay,
                               .append = append,
                               .fetch = fetch,
                               .commit = commit};
    j->lock = -1;
    j->results_end = &j->results;
    pthread_mutex_init(&j->mutex, NULL);
    pthread_cond_init(&j->work, NULL);
    j->done = (struct source){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_done};
    snprintf(j->reserve, sizeof j->reserve, "%s/reserve", folder);
    int r = take_lock(j, folder);
    if (r == 0)
        r = open_database(j, folder);
    if (r == 0)
        r = make_tables(j);
    if (r == 0)
        r = check_owner(j, cluster);
    if (r == 0)
        r = begin_life(j);
    if (r == 0)
        r = prepare(j);
    if (r == 0)
        make_way(folder);
    j->spent = r == 0 && !make_reserve(j);
    if (r < 0) {
        journal_close(j);
        *ret_error = r;
        return NULL;
    }
    return j;
}

void journal_close(struct journal *j) {
    if (j == NULL)
        return;
    if (j->running) {
        pthread_mutex_lock(&j->mutex);
        j->stop = true;
        j->sealed = j->filling.len;
        pthread_cond_signal(&j->work);
        pthread_mutex_unlock(&j->mutex);
        pthread_join(j->thread, NULL);
        loop_remove(j->loop, &j->done);
    }
    sqlite3_stmt *const all[] = {j->begin,    j->commit,    j->rollback, j->insert,
                                 j->open_key, j->close_key, j->trim,     j->first};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sqlite3_finalize(all[i]);
    sqlite3_close(j->db);
    while (j->results != NULL) {
        struct result *r = j->results;
        j->results = r->next;
        free(r);
    }
    if (j->done.fd >= 0)
        close(j->done.fd);
    if (j->lock >= 0)
        close(j->lock);
    recent_fini(&j->recent);
    free(j->wanted);
    free(j->filling.at);
    free(j->writing.at);
    free(j);
}

const struct life_log *journal_log(struct journal *j) {
    return &j->log;
}

uint64_t journal_commits(const struct journal *j) {
    return j->commits;
}

int journal_check(const char *folder) {
    char path[PATH_BYTES];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/state.db", folder);
    int r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK ? check_format(db)
                                                                                : -EIO;
    sqlite3_close(db);
    return r;
}

int journal_history(const char *folder, uint64_t from,
                    bool (*event)(void *context, uint64_t key, struct bytes body), void *context) {
    char path[PATH_BYTES];
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    snprintf(path, sizeof path, "%s/state.db", folder);
    int r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);
    if (r == SQLITE_OK && check_format(db) == -ENOTSUP) {
        sqlite3_close(db);
        return -ENOTSUP;
    }
    if (r == SQLITE_OK)
        r = sqlite3_prepare_v2(db,
                               "SELECT key, body FROM events WHERE key >= coalesce("
                               "(SELECT max(key) FROM events WHERE key <= ?1), 0)"
                               " ORDER BY key, seq",
                               -1, &s, NULL);
    if (r == SQLITE_OK)
        sqlite3_bind_int64(s, 1, (sqlite3_int64)from);
    bool more = r == SQLITE_OK;
    while (more && (r = sqlite3_step(s)) == SQLITE_ROW)
        more = event(context, (uint64_t)sqlite3_column_int64(s, 0),
                     bytes_of(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1)));
    sqlite3_finalize(s);
    sqlite3_close(db);
    return r == SQLITE_DONE || r == SQLITE_ROW ? 0 : -EIO;
}
