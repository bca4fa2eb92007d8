/* SPDX-License-Identifier: MIT */
/* Where a cluster lives: see cluster.h. */
#include "client/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/text.h"
#include "base/units.h"
#include "client/hostsfile.h"
#include "os/files.h"
#include "os/plan.h"

/* What a later version adds to the file is passed over. Where that would be wrong it gives the file a higher format. */
enum { FILE_BYTES_MAX = 4096, FORMAT = 1 };

#define TEXT_BYTES_MAX (16 * MIB) /* of files that grow with the nodes */

static const char file_name[] = "cluster";

/* ---- folders ---- */

const char *cluster_pick(const char *asked) {
    const char *set = getenv("STORM_CLUSTER");
    if (asked != NULL)
        return asked;
    return set != NULL && *set != '\0' ? set : "local";
}

static int join(char *out, size_t cap, const char *left, const char *right) {
    int n = snprintf(out, cap, "%s/%s", left, right);
    return n < 0 || (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

/* Asking the user database costs more than all the rest: only if the environment does not say. */
static const char *user_home(void) {
    const char *home = getenv("HOME");
    if (home != NULL && *home == '/')
        return home;
    const struct passwd *p = getpwuid(geteuid());
    return p != NULL && p->pw_dir != NULL && *p->pw_dir == '/' ? p->pw_dir : NULL;
}

int cluster_home(char *out, size_t cap) {
    const char *set = getenv("STORM_HOME");
    char here[CLUSTER_PATH_MAX];
    if (set == NULL || *set == '\0') {
        const char *home = user_home();
        return home == NULL ? -ENOENT : join(out, cap, home, ".storm");
    }
    if (*set != '/')
        return getcwd(here, sizeof here) == NULL ? -errno : join(out, cap, here, set);
    int n = snprintf(out, cap, "%s", set);
    return (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

static bool name_fits(const char *name) {
    size_t len = strlen(name);
    return len > 0 && len < CLUSTER_NAME_MAX && *name != '.' && *name != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

int cluster_folder(const char *name, char *out, size_t cap) {
    char home[CLUSTER_PATH_MAX];
    if (!name_fits(name))
        return -EINVAL;
    int r = cluster_home(home, sizeof home);
    return r < 0 ? r : join(out, cap, home, name);
}

/* ---- the file's text ---- */

__attribute__((format(printf, 2, 3))) static int trouble_say(struct cluster_trouble *t,
                                                             const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(t->words, sizeof t->words, format, args);
    va_end(args);
    return -EBADMSG;
}

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret) {
    int digits = text_scan_u64(text, ret);
    return digits > 0 && text[digits] == '\0' && *ret >= least && *ret <= most;
}

static bool read_u32(const char *text, uint32_t least, uint32_t most, uint32_t *ret) {
    uint64_t value;
    if (!read_number(text, least, most, &value))
        return false;
    *ret = (uint32_t)value;
    return true;
}

static bool read_pid(const char *text, pid_t *ret) {
    uint64_t value;
    if (!read_number(text, 0, INT32_MAX, &value))
        return false;
    *ret = (pid_t)value;
    return true;
}

static bool read_word(const char *text, char *out, size_t cap) {
    size_t len = strlen(text);
    if (len >= cap)
        return false;
    memcpy(out, text, len + 1);
    return true;
}

static bool read_hex64(const char *text, uint64_t *ret) {
    uint64_t value = 0;
    for (int i = 0; i < 16; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *at = text[i] == '\0' ? NULL : strchr(digits, text[i]);
        if (at == NULL)
            return false;
        value = value << 4 | (uint64_t)(at - digits);
    }
    *ret = value;
    return true;
}

static bool read_key(const char *text, uint64_t key[2]) {
    return strlen(text) == 32 && read_hex64(text, &key[0]) && read_hex64(text + 16, &key[1]);
}

static bool read_yes(const char *text, bool *ret) {
    *ret = strcmp(text, "yes") == 0;
    return *ret || strcmp(text, "no") == 0;
}

/* "20000-20999" */
static bool read_ports(const char *text, uint16_t *ret_first, uint16_t *ret_last) {
    uint64_t first = 0, last = 0;
    int digits = text_scan_u64(text, &first);
    if (digits <= 0 || text[digits] != '-' ||
        !read_number(text + digits + 1, 1, UINT16_MAX, &last) || first < 1 || first > last)
        return false;
    *ret_first = (uint16_t)first;
    *ret_last = (uint16_t)last;
    return true;
}

enum field {
    FIELD_NAME,
    FIELD_NODES,
    FIELD_PES,
    FIELD_PREFIX,
    FIELD_TREE,
    FIELD_LINKS,
    FIELD_KEY,
    FIELD_MANAGER,
    FIELD_ROOT,
    FIELD_VERSION,
    FIELD_STARTED,
    FIELD_WATCHER,
    FIELD_GUARANTEE,
    FIELD_ORPHAN,
    FIELD_VACATE,
    FIELD_HOSTS_EACH,
    FIELD_HOSTS_ALL,
    FIELD_HOOK,
    FIELD_FABRIC,
    FIELD_BANDWIDTH,
    FIELD_POLICY,
    FIELD_SLOTS,
    FIELD_QUANTUM,
    FIELD_SEALED,
    FIELD_ASKS,
    FIELD_PORTS,
    FIELD_FOLDER,
    FIELD_WIDTHS,
    FIELD_ALONE,
    FIELD_FORMAT,
    FIELDS
};

static const char *const field_names[FIELDS] = {
    [FIELD_NAME] = "name",
    [FIELD_NODES] = "nodes",
    [FIELD_PES] = "pes",
    [FIELD_PREFIX] = "prefix",
    [FIELD_TREE] = "tree",
    [FIELD_LINKS] = "links",
    [FIELD_KEY] = "key",
    [FIELD_MANAGER] = "manager",
    [FIELD_ROOT] = "root",
    [FIELD_VERSION] = "version",
    [FIELD_STARTED] = "started",
    [FIELD_WATCHER] = "watcher",
    [FIELD_GUARANTEE] = "guarantee",
    [FIELD_ORPHAN] = "orphan",
    [FIELD_VACATE] = "vacate",
    [FIELD_HOSTS_EACH] = "hosts_each",
    [FIELD_HOSTS_ALL] = "hosts_all",
    [FIELD_HOOK] = "hook",
    [FIELD_FABRIC] = "fabric",
    [FIELD_BANDWIDTH] = "bandwidth",
    [FIELD_POLICY] = "policy",
    [FIELD_SLOTS] = "slots",
    [FIELD_QUANTUM] = "quantum",
    [FIELD_SEALED] = "sealed",
    [FIELD_ASKS] = "asks",
    [FIELD_PORTS] = "ports",
    [FIELD_FOLDER] = "folder",
    [FIELD_WIDTHS] = "widths",
    [FIELD_ALONE] = "alone",
    [FIELD_FORMAT] = "format",
};

static bool field_must(enum field f) {
    return f == FIELD_NAME || f == FIELD_NODES || f == FIELD_KEY || f == FIELD_MANAGER;
}

static bool read_field(struct cluster *c, enum field f, const char *value) {
    switch (f) {
    case FIELD_NAME:
        return name_fits(value) && read_word(value, c->name, sizeof c->name);
    case FIELD_NODES:
        return read_u32(value, 1, CLUSTER_NODES_MAX, &c->nodes);
    case FIELD_PES:
        return read_u32(value, 1, UINT16_MAX, &c->pes);
    case FIELD_PREFIX:
        return read_word(value, c->prefix, sizeof c->prefix);
    case FIELD_TREE:
        return read_word(value, c->tree, sizeof c->tree);
    case FIELD_LINKS:
        return transport_parse(value, &c->links);
    case FIELD_KEY:
        return read_key(value, c->key);
    case FIELD_MANAGER:
        return address_parse(&c->manager, value) == 0;
    case FIELD_ROOT:
        return read_u32(value, 0, CLUSTER_NODES_MAX - 1, &c->root);
    case FIELD_VERSION:
        return read_word(value, c->version, sizeof c->version);
    case FIELD_STARTED:
        return read_number(value, 0, UINT64_MAX, &c->started_ns);
    case FIELD_WATCHER:
        return read_pid(value, &c->watcher);
    case FIELD_GUARANTEE:
        return read_word(value, c->guarantee, sizeof c->guarantee);
    case FIELD_ORPHAN:
        return read_number(value, 0, UINT64_MAX, &c->orphan_ns);
    case FIELD_VACATE:
        return read_number(value, 0, UINT64_MAX, &c->vacate_ns);
    case FIELD_HOSTS_EACH:
        return read_u32(value, 0, UINT32_MAX, &c->hosts_each);
    case FIELD_HOSTS_ALL:
        return read_u32(value, 0, UINT32_MAX, &c->hosts_all);
    case FIELD_HOOK:
        return *value == '/' && read_word(value, c->hook, sizeof c->hook);
    case FIELD_FABRIC:
        return read_word(value, c->fabric, sizeof c->fabric);
    case FIELD_BANDWIDTH:
        return read_number(value, 0, UINT64_MAX, &c->bytes_per_s);
    case FIELD_POLICY:
        return read_word(value, c->policy, sizeof c->policy);
    case FIELD_SLOTS:
        return read_u32(value, 0, 64, &c->slots);
    case FIELD_QUANTUM:
        return read_number(value, 0, UINT64_MAX, &c->quantum_ns);
    case FIELD_SEALED:
        return read_yes(value, &c->sealed);
    case FIELD_ASKS:
        return read_yes(value, &c->asks);
    case FIELD_PORTS:
        return read_ports(value, &c->port_first, &c->port_last);
    case FIELD_FOLDER:
        return *value == '/' && read_word(value, c->node_folder, sizeof c->node_folder);
    case FIELD_WIDTHS:
        return read_yes(value, &c->widths);
    case FIELD_ALONE:
        return read_yes(value, &c->alone);
    case FIELD_FORMAT:
        return read_u32(value, 1, UINT32_MAX, &c->format);
    case FIELDS:
        break;
    }
    return false;
}

static enum field find_field(const char *name, size_t len) {
    for (int f = 0; f < FIELDS; f++)
        if (strlen(field_names[f]) == len && strncmp(field_names[f], name, len) == 0)
            return (enum field)f;
    return FIELDS;
}

/* One line; what a later version has added is passed over. */
static int parse_line(struct cluster *c, const char *line, unsigned number, uint32_t *seen,
                      struct cluster_trouble *t) {
    size_t len = strcspn(line, " ");
    if (line[len] == '\0')
        return trouble_say(t, "line %u: \"key value\" expected", number);
    enum field f = find_field(line, len);
    if (f == FIELDS)
        return 0;
    if (*seen & 1U << f)
        return trouble_say(t, "line %u: %s is there twice", number, field_names[f]);
    if (!read_field(c, f, line + len + 1))
        return trouble_say(t, "line %u: \"%.60s\" will not do for %s", number, line + len + 1,
                           field_names[f]);
    *seen |= 1U << f;
    if (c->format > FORMAT) /* the first line says so, before anything is misunderstood */
        return trouble_say(t, "it was written by a newer STORM");
    return 0;
}

static struct cluster usual(void) {
    return (struct cluster){
        .format = FORMAT, .pes = 1, .prefix = "n", .tree = "kary:8", .links = TRANSPORT_UNIX};
}

int cluster_parse(struct cluster *ret, const char *text, struct cluster_trouble *t) {
    struct cluster c = usual();
    uint32_t seen = 0;
    char line[512];
    unsigned number = 1;
    for (; *text != '\0'; number++) {
        size_t len = strcspn(text, "\n");
        if (len >= sizeof line)
            return trouble_say(t, "line %u is too long", number);
        memcpy(line, text, len);
        line[len] = '\0';
        text += len + (text[len] == '\n');
        if (len == 0 || *line == '#')
            continue;
        int r = parse_line(&c, line, number, &seen, t);
        if (r < 0)
            return r;
    }
    for (int f = 0; f < FIELDS; f++)
        if (field_must((enum field)f) && !(seen & 1U << f))
            return trouble_say(t, "line %u: no line tells the %s", number, field_names[f]);
    if (c.root > c.nodes) /* the manager's seat comes after the nodes */
        return trouble_say(t, "there is no node %" PRIu32 " to be the root", c.root);
    *ret = c;
    return 0;
}

static void write_line(struct text *t, const char *key, const char *value) {
    if (*value == '\0')
        return;
    text_str(t, key);
    text_char(t, ' ');
    text_str(t, value);
    text_char(t, '\n');
}

/* What a cluster may do without. */
static void format_more(const struct cluster *c, struct text *t) {
    char ports[24] = "";
    if (c->port_first != 0)
        snprintf(ports, sizeof ports, "%u-%u", (unsigned)c->port_first, (unsigned)c->port_last);
    write_line(t, field_names[FIELD_HOOK], c->hook);
    write_line(t, field_names[FIELD_FABRIC], c->fabric);
    write_line(t, field_names[FIELD_POLICY], c->policy);
    write_line(t, field_names[FIELD_SEALED], c->sealed ? "yes" : "");
    write_line(t, field_names[FIELD_ASKS], c->asks ? "yes" : "");
    write_line(t, field_names[FIELD_PORTS], ports);
    write_line(t, field_names[FIELD_FOLDER], c->node_folder);
    write_line(t, field_names[FIELD_WIDTHS], c->widths ? "yes" : "");
    write_line(t, field_names[FIELD_ALONE], c->alone ? "yes" : "");
}

size_t cluster_format(const struct cluster *c, char *out, size_t cap) {
    char address[ADDRESS_TEXT_MAX], head[FILE_BYTES_MAX];
    struct text t;
    address_format(&c->manager, address, sizeof address);
    snprintf(head, sizeof head,
             "format %d\nname %s\nnodes %" PRIu32 "\npes %" PRIu32
             "\nprefix %s\ntree %s\nlinks %s\n"
             "key %016" PRIx64 "%016" PRIx64 "\nmanager %s\nroot %" PRIu32 "\nversion %s\n"
             "started %" PRIu64 "\nwatcher %ld\nguarantee %s\norphan %" PRIu64
             "\nbandwidth %" PRIu64 "\nslots %" PRIu32 "\nquantum %" PRIu64 "\nvacate %" PRIu64
             "\nhosts_each %" PRIu32 "\nhosts_all %" PRIu32 "\n",
             FORMAT, c->name, c->nodes, c->pes, c->prefix, c->tree, transport_name(c->links),
             c->key[0], c->key[1], address, c->root, c->version, c->started_ns, (long)c->watcher,
             c->guarantee, c->orphan_ns, c->bytes_per_s, c->slots, c->quantum_ns, c->vacate_ns,
             c->hosts_each, c->hosts_all);
    text_init(&t, out, cap);
    text_str(&t, head);
    format_more(c, &t);
    return t.full;
}

/* ---- the file ---- */

int cluster_save(const struct cluster *c, const char *folder) {
    char path[CLUSTER_PATH_MAX], text[FILE_BYTES_MAX];
    size_t len = cluster_format(c, text, sizeof text);
    if (len >= sizeof text || join(path, sizeof path, folder, file_name) < 0)
        return -ENAMETOOLONG;
    return files_replace(path, bytes_of(text, len));
}

/* A deep folder's sockets do not fit into an address: then they are named from inside the folder.
 * The descriptor stays open, as the address leads through it. */
static int reach(struct address *a, const char *folder) {
    char text[ADDRESS_TEXT_MAX], name[sizeof a->local.sun_path];
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    memcpy(name, a->local.sun_path, sizeof name);
    snprintf(text, sizeof text, "unix:/proc/self/fd/%d/%.64s", fd, name);
    return address_parse(a, text);
}

/* The socket need not be there: whoever connects finds out. On another machine that sees the same folder nobody listens at it. */
static int reach_near(struct cluster *c, const char *folder) {
    char text[CLUSTER_PATH_MAX + ADDRESS_TEXT_MAX];
    c->near = plan_near(c->nodes);
    snprintf(text, sizeof text, "unix:%s/%s", folder, c->near.local.sun_path);
    return address_parse(&c->near, text) == 0 ? 0 : reach(&c->near, folder);
}

static int reach_manager(struct cluster *c, const char *folder) {
    if (address_is_far(&c->manager))
        return reach_near(c, folder);
    return c->manager.local.sun_path[0] == '/' ? 0 : reach(&c->manager, folder);
}

static int read_file(struct cluster *ret, const char *folder, struct cluster_trouble *t) {
    char path[CLUSTER_PATH_MAX], text[FILE_BYTES_MAX];
    if (join(path, sizeof path, folder, file_name) < 0)
        return -ENAMETOOLONG;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t len = read(fd, text, sizeof text);
    int error = errno;
    close(fd);
    if (len < 0)
        return -error;
    if ((size_t)len == sizeof text)
        return trouble_say(t, "the file is too long");
    if (memchr(text, '\0', (size_t)len) != NULL)
        return trouble_say(t, "the file is no text");
    text[len] = '\0';
    return cluster_parse(ret, text, t);
}

int cluster_load(struct cluster *ret, const char *folder, struct cluster_trouble *t) {
    struct cluster c = {0};
    t->words[0] = '\0';
    int r = read_file(&c, folder, t);
    if (r == 0)
        r = cluster_load_hosts(&c, folder, t);
    if (r == 0)
        r = reach_manager(&c, folder);
    if (r == 0)
        *ret = c;
    else
        cluster_free(&c);
    return r;
}

/* ---- its hosts ---- */

int cluster_load_hosts(struct cluster *c, const char *folder, struct cluster_trouble *t) {
    char path[CLUSTER_PATH_MAX];
    struct cluster_trouble inside;
    struct hosts hosts;
    struct roster *fresh = NULL;
    if (hosts_path(folder, path, sizeof path) < 0)
        return -ENAMETOOLONG;
    int r = hosts_read(&hosts, c->nodes, path, &inside);
    if (r == -EBADMSG)
        trouble_say(t, "hosts: %.150s", inside.words);
    if (r == 0)
        fresh = hosts_roster(&hosts, c->prefix, &r, NULL);
    hosts_free(&hosts);
    if (r < 0 && r != -ENOENT)
        return r;
    free(c->hosts);
    c->hosts = fresh;
    return 0;
}

void cluster_free(struct cluster *c) {
    free(c->hosts);
    c->hosts = NULL;
}

/* ---- names of nodes ---- */

struct roster cluster_roster(const struct cluster *c) {
    return c->hosts != NULL ? *c->hosts : roster_plain(c->prefix, c->nodes);
}

uint32_t cluster_count(const struct cluster *c) {
    return c->hosts != NULL ? roster_count(c->hosts) : c->nodes;
}

void cluster_all(const struct cluster *c, struct nodeset *set) {
    struct roster roster = cluster_roster(c);
    roster_all(&roster, set);
}

void cluster_node_name(const struct cluster *c, uint32_t node, char *out, size_t cap) {
    struct roster roster = cluster_roster(c);
    roster_name(&roster, node, out, cap);
}

size_t cluster_format_nodes(const struct cluster *c, const struct nodeset *set, char *out,
                            size_t cap) {
    struct roster roster = cluster_roster(c);
    return roster_format(&roster, set, out, cap);
}

int cluster_nodes(const struct cluster *c, const char *list, struct nodeset *set,
                  struct cluster_trouble *t) {
    char name[HOSTLIST_NAME_MAX + 1];
    struct roster roster = cluster_roster(c);
    struct hostlist it;
    size_t where = 0;
    const char *reason = "";
    int r = hostlist_check(list, NULL, &where, &reason);
    if (r == 0)
        r = hostlist_init(&it, list);
    if (r < 0) {
        trouble_say(t, "%s at \"%.40s\"", reason, list + where);
        return r;
    }
    nodeset_clear(set);
    while (hostlist_next(&it, name, sizeof name) > 0) {
        uint32_t node;
        if (!roster_find(&roster, name, &node)) {
            snprintf(t->words, sizeof t->words, "%.150s", name);
            return -ENOENT;
        }
        nodeset_add(set, node);
    }
    return 0;
}

bool cluster_folder_is_elsewhere(const char *folder) {
    struct cluster cluster;
    struct cluster_trouble trouble;
    if (cluster_load(&cluster, folder, &trouble) < 0)
        return false;
    bool elsewhere = cluster_is_elsewhere(&cluster);
    cluster_free(&cluster);
    return elsewhere;
}

int cluster_text(const char *path, char **ret, struct cluster_trouble *trouble) {
    trouble->words[0] = '\0';
    int r = files_text(path, TEXT_BYTES_MAX, ret);
    if (r == -EBADMSG)
        snprintf(trouble->words, sizeof trouble->words, "it is no text, or too long");
    return r;
}
