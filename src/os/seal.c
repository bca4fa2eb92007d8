/* SPDX-License-Identifier: MIT */
/* TLS sessions: see seal.h.
 *
 * The library reads and writes through functions of ours (a BIO). They count what a stranger says, never raise SIGPIPE,
 * and take from the socket once for each time that it was said to have something: so when the library has no more to
 * give, everything that is left is in the socket, where epoll sees it. */
#include "os/seal.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/calls.h"

/* Several records in one call; kept only as long as part of one is there. */
enum { READ_BYTES = 64 * 1024, RECORD_BYTES = 16 * 1024 };

#define REKEY_BYTES (32 * GIB)

static const unsigned char cipher_id[2] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */

/* What the library makes for sessions is the same for all of them, and takes longer than several handshakes: a process
 * makes it once, with its first session or before, and so that those it forks need not. It is never freed. */
static struct {
    pthread_once_t once;
    SSL_CTX *context; /* NULL: no memory, or the library does not work */
    BIO_METHOD *method;
} common = {.once = PTHREAD_ONCE_INIT};

struct seals {
    struct seal_keys keys;
    uint64_t rekey_bytes;
};

struct seal {
    struct seals *all;
    SSL *ssl;
    int fd;
    bool ours;
    bool may_receive; /* the socket has something that was not taken yet */
    bool more;        /* more records follow at once */
    bool done;        /* the handshake */
    bool named;       /* `id` is what the session is keyed by */
    bool gone;        /* the peer has closed the socket */
    bool blocked;     /* the socket takes no more for now */
    bool finished;    /* we have said that nothing more comes */
    int failed;       /* -errno; for good */
    int mute; /* the same, of writing only: what the peer has said before can still be read */
    int socket_error; /* -errno, of the call under way */
    uint64_t handshake_bytes;
    uint64_t written; /* since the last change of keys */
    struct identity id;
    uint8_t id_bytes[IDENTITY_BYTES];
    uint8_t key[KEY_BYTES]; /* ours: until the handshake is over */
    char reason[SEAL_REASON_MAX];
};

static int fail(struct seal *s, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The first reason is the one. */
static int fail(struct seal *s, int status, const char *format, ...) {
    va_list args;
    if (s->failed != 0)
        return s->failed;
    s->failed = status;
    va_start(args, format);
    vsnprintf(s->reason, sizeof s->reason, format, args);
    va_end(args);
    return status;
}

/* ---- the socket ---- */

static int take_from_socket(BIO *bio, char *at, size_t size, size_t *ret_len) {
    struct seal *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!s->done && s->handshake_bytes >= SEAL_HANDSHAKE_BYTES_MAX) {
        fail(s, -EPROTO, "a handshake that does not end");
        return 0;
    }
    if (!s->may_receive) {
        BIO_set_retry_read(bio);
        return 0;
    }
    if (!s->done && size > SEAL_HANDSHAKE_BYTES_MAX - s->handshake_bytes)
        size = SEAL_HANDSHAKE_BYTES_MAX - s->handshake_bytes;
    s->may_receive = false;
    ssize_t got = call_recv(s->fd, at, size, 0);
    if (got > 0) {
        s->handshake_bytes += s->done ? 0 : (uint64_t)got;
        *ret_len = (size_t)got;
        return 1;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_read(bio);
        return 0;
    }
    s->gone = got == 0;
    s->socket_error = got < 0 ? -errno : 0;
    return 0;
}

static int give_to_socket(BIO *bio, const char *at, size_t len, size_t *ret_len) {
    struct seal *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t sent = call_send(s->fd, at, len, MSG_NOSIGNAL | (s->more ? MSG_MORE : 0));
    if (sent >= 0) {
        *ret_len = (size_t)sent;
        return 1;
    }
    if (errno == EAGAIN || errno == EINTR) {
        s->blocked = true;
        BIO_set_retry_write(bio);
    } else {
        s->socket_error = -errno;
    }
    return 0;
}

static long control(BIO *bio, int what, long number, void *at) {
    const struct seal *s = BIO_get_data(bio);
    (void)number;
    (void)at;
    if (what == BIO_CTRL_EOF)
        return s->gone;
    return what == BIO_CTRL_FLUSH || what == BIO_CTRL_PUSH || what == BIO_CTRL_POP;
}

static BIO_METHOD *make_method(void) {
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    if (m == NULL || !BIO_meth_set_read_ex(m, take_from_socket) ||
        !BIO_meth_set_write_ex(m, give_to_socket) || !BIO_meth_set_ctrl(m, control)) {
        BIO_meth_free(m);
        return NULL;
    }
    return m;
}

/* ---- keys ---- */

/* What the library takes a key as: a session that was never there. */
static SSL_SESSION *session_of(SSL *ssl, const uint8_t key[KEY_BYTES]) {
    SSL_SESSION *session = SSL_SESSION_new();
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_id);
    if (session == NULL || cipher == NULL ||
        !SSL_SESSION_set1_master_key(session, key, KEY_BYTES) ||
        !SSL_SESSION_set_cipher(session, cipher) ||
        !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION)) {
        SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

static int offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **ret_id, size_t *ret_len,
                     SSL_SESSION **ret) {
    struct seal *s = SSL_get_app_data(ssl);
    *ret = NULL;
    if (digest != NULL && EVP_MD_get_type(digest) != NID_sha256)
        return 1; /* goes on without a key, which we do not accept */
    *ret = session_of(ssl, s->key);
    *ret_id = s->id_bytes;
    *ret_len = sizeof s->id_bytes;
    s->named = true;
    return *ret != NULL;
}

/* Why a stranger is none whom we know. */
static void refuse_identity(struct seal *s, int status, const struct identity *id) {
    char text[IDENTITY_TEXT_MAX];
    identity_format(id, text);
    if (status == -ESTALE)
        fail(s, status, "%s: the key of a former epoch", text);
    else if (status == -ENOKEY)
        fail(s, status, "%s: we have no key for that", text);
    else
        fail(s, status, "%s: no such can come to us", text);
}

static int find_key(SSL *ssl, const unsigned char *id_bytes, size_t len, SSL_SESSION **ret) {
    struct seal *s = SSL_get_app_data(ssl);
    struct identity id;
    uint8_t key[KEY_BYTES];
    *ret = NULL;
    if (identity_decode(bytes_of(id_bytes, len), &id) < 0) {
        fail(s, -EKEYREJECTED, "an identity that is none of ours");
        return 0;
    }
    int r = s->all->keys.answer(s->all->keys.context, &id, key);
    if (r < 0) {
        refuse_identity(s, r, &id);
        return 0;
    }
    *ret = session_of(ssl, key);
    OPENSSL_cleanse(key, sizeof key);
    s->id = id;
    s->named = true;
    return *ret != NULL;
}

/* ---- what all share ---- */

static bool set_up(SSL_CTX *c) {
    SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(c, 1);
    SSL_CTX_set_default_read_buffer_len(c, READ_BYTES);
    SSL_CTX_set_psk_use_session_callback(c, offer_key);
    SSL_CTX_set_psk_find_session_callback(c, find_key);
    return SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) &&
           SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) &&
           SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256") && SSL_CTX_set_num_tickets(c, 0) &&
           SSL_CTX_set_max_early_data(c, 0) && SSL_CTX_set_recv_max_early_data(c, 0) &&
           SSL_CTX_set1_groups_list(c, "X25519");
}

static void make_common(void) {
    /* Not what a file or the environment says: those are inputs that nobody has checked. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    common.method = make_method();
    if (context != NULL && common.method != NULL && set_up(context))
        common.context = context;
    else
        SSL_CTX_free(context);
}

bool seals_ready(void) {
    pthread_once(&common.once, make_common);
    return common.context != NULL;
}

struct seals *seals_new(const struct seal_keys *keys) {
    struct seals *all = calloc(1, sizeof *all);
    if (all == NULL)
        return NULL;
    all->keys = *keys;
    all->rekey_bytes = REKEY_BYTES;
    return all;
}

void seals_free(struct seals *all) {
    free(all);
}

void seals_set_rekey_bytes(struct seals *all, uint64_t bytes) {
    all->rekey_bytes = bytes;
}

struct sealer seals_sealer(struct seals *all) {
    return (struct sealer){.seals = all,
                           .connect = seal_connect,
                           .accept = seal_accept,
                           .free = seal_free,
                           .heard = seal_heard,
                           .shake = seal_shake,
                           .read = seal_read,
                           .write = seal_write,
                           .finish = seal_finish,
                           .who = seal_who,
                           .reason = seal_reason};
}

/* ---- a session ---- */

static struct seal *seal_new(struct seals *all, int fd, bool ours) {
    struct seal *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->all = all;
    s->fd = fd;
    s->ours = ours;
    s->ssl = seals_ready() ? SSL_new(common.context) : NULL;
    BIO *bio = s->ssl == NULL ? NULL : BIO_new(common.method);
    if (bio == NULL) {
        seal_free(s);
        return NULL;
    }
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    SSL_set_app_data(s->ssl, s);
    if (ours) {
        /* There are no authorities: who shows a certificate instead of a key is refused. */
        SSL_set_verify(s->ssl, SSL_VERIFY_PEER, NULL);
        SSL_set_connect_state(s->ssl);
    } else {
        SSL_set_accept_state(s->ssl);
    }
    return s;
}

struct seal *seal_connect(struct seals *all, int fd, uint32_t to) {
    struct seal *s = seal_new(all, fd, true);
    if (s == NULL)
        return NULL;
    if (all->keys.offer(all->keys.context, to, &s->id, s->key) < 0) {
        seal_free(s);
        return NULL;
    }
    identity_encode(&s->id, s->id_bytes);
    return s;
}

struct seal *seal_accept(struct seals *all, int fd) {
    return seal_new(all, fd, false);
}

void seal_free(struct seal *s) {
    if (s == NULL)
        return;
    SSL_free(s->ssl);
    OPENSSL_cleanse(s, sizeof *s);
    free(s);
}

static void begin(struct seal *s) {
    if (ERR_peek_error() != 0) /* clearing takes longer than looking, and comes with every record */
        ERR_clear_error();
    s->socket_error = 0;
    s->blocked = false;
}

/* What the library's result means, as -errno. */
static int status_of(struct seal *s, int result) {
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    int error = SSL_get_error(s->ssl, result);
    if (s->failed != 0)
        return s->failed;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return -EAGAIN;
    if (s->gone) /* the library may then have tried to complain to it */
        return fail(s, -ECONNRESET, "the peer has gone without a word");
    if (s->socket_error != 0)
        return fail(s, s->socket_error, "%s", strerror(-s->socket_error));
    return fail(s, s->done ? -EBADMSG : -EPROTO, "%s", reason != NULL ? reason : "TLS fails");
}

/* The library would also go on by other means, were they offered. That they are not is checked once more. */
static int check_session(struct seal *s) {
    const SSL_CIPHER *cipher = SSL_get_current_cipher(s->ssl);
    if (!s->named || !SSL_session_reused(s->ssl))
        return fail(s, -EPROTO, "a session without a key");
    if (SSL_version(s->ssl) != TLS1_3_VERSION || cipher == NULL ||
        SSL_CIPHER_get_protocol_id(cipher) != 0x1301 ||
        SSL_get_negotiated_group(s->ssl) != NID_X25519)
        return fail(s, -EPROTO, "a session of another form");
    s->done = true;
    OPENSSL_cleanse(s->key, sizeof s->key);
    return SEAL_DONE;
}

/* A wrong key looks like a broken session to the library. */
static void name_the_peer(struct seal *s) {
    char text[IDENTITY_TEXT_MAX], reason[SEAL_REASON_MAX];
    if (!s->named || s->failed == -ECONNRESET)
        return;
    identity_format(&s->id, text);
    snprintf(reason, sizeof reason, "%s", s->reason);
    snprintf(s->reason, sizeof s->reason, "%.90s: %.90s", text, reason);
}

int seal_shake(struct seal *s) {
    if (s->failed != 0)
        return s->failed;
    if (s->done)
        return SEAL_DONE;
    begin(s);
    int result = SSL_do_handshake(s->ssl);
    if (result > 0)
        return check_session(s);
    bool known = s->failed != 0;
    int status = status_of(s, result);
    if (status == -EAGAIN)
        return s->blocked ? SEAL_SEND : SEAL_HEAR;
    if (!known)
        name_the_peer(s);
    return status;
}

void seal_heard(struct seal *s) {
    s->may_receive = true;
}

ssize_t seal_read(struct seal *s, void *at, size_t len) {
    size_t got = 0;
    ASSERT(s->done);
    if (s->failed != 0)
        return s->failed;
    begin(s);
    int result = SSL_read_ex(s->ssl, at, len, &got);
    if (result > 0)
        return (ssize_t)got;
    if (SSL_get_error(s->ssl, result) == SSL_ERROR_ZERO_RETURN)
        return 0;
    return status_of(s, result);
}

/* Long before so much has been said under one key that it could be told from noise. Small records count as much as
 * larger ones: the cipher's limit is one of records. */
static void rekey(struct seal *s, size_t len) {
    s->written += len < RECORD_BYTES / 4 ? RECORD_BYTES / 4 : len;
    if (s->written < s->all->rekey_bytes)
        return;
    s->written = 0;
    SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
}

ssize_t seal_write(struct seal *s, const void *at, size_t len) {
    const uint8_t *from = at;
    size_t total = 0;
    ASSERT(s->done);
    if (s->failed != 0 || s->mute != 0)
        return s->failed != 0 ? s->failed : s->mute;
    begin(s);
    while (total < len) {
        size_t part = len - total < RECORD_BYTES ? len - total : RECORD_BYTES, put = 0;
        s->more = total + part < len;
        int result = SSL_write_ex(s->ssl, from + total, part, &put);
        s->more = false;
        if (result <= 0) {
            int status = s->socket_error != 0 ? s->mute = s->socket_error : status_of(s, result);
            return total > 0 && status == -EAGAIN ? (ssize_t)total : status;
        }
        total += put;
        rekey(s, put);
    }
    return (ssize_t)total;
}

int seal_finish(struct seal *s) {
    if (s->failed != 0 || s->mute != 0 || s->finished || !s->done)
        return s->failed;
    begin(s);
    int result = SSL_shutdown(s->ssl);
    int status = result >= 0 ? 0 : status_of(s, result);
    s->finished = status != -EAGAIN;
    return status;
}

const struct identity *seal_who(const struct seal *s) {
    ASSERT(s->done);
    return &s->id;
}

const char *seal_reason(const struct seal *s) {
    return s->reason;
}
