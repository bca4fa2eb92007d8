/* SPDX-License-Identifier: MIT */
/* storm login: commands on this machine may use a cluster whose manager is on another.
 *
 * There `storm login --issue` makes a key for one more client and prints what a command must know; here that is fetched by ssh and
 * written to a folder of that name in STORM_HOME. The key comes by ssh's own encryption, is in no argument and no environment,
 * and nobody but its owner may read the file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/options.h"
#include "client/hostsfile.h"
#include "client/keys.h"
#include "os/errand.h"
#include "os/files.h"
#include "os/keyring.h"

/* Between the cluster's file, the list of its hosts, and the key. */
#define MARK_HOSTS "--- hosts\n"
#define MARK_KEY   "--- key\n"

enum { PARCEL_MAX = 1 << 20, COMMAND_MAX = 512 };

struct login {
    const char *name, *connector, *command;
    bool issue;
    const char *host;
};

static void print_help(const struct option *table) {
    puts(
        "usage: storm login [USER@]HOST [--cluster NAME]\n"
        "\n"
        "Lets commands on this machine use a cluster whose manager is on HOST: fetches where it is and a key\n"
        "of our own, by ssh. HOST must have brought it up (storm up --hosts), and have storm in its PATH.\n");
    options_print(table, stdout);
}

/* ---- at the manager's machine ---- */

/* Each client has a number of its own; the last one given out is written down. */
static int next_client(const char *folder, uint64_t *ret) {
    char path[CLUSTER_PATH_MAX + 16], text[24] = "";
    snprintf(path, sizeof path, "%s/clients", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int r = flock(fd, LOCK_EX) < 0 ? -errno : 0;
    *ret = KEYS_DESK;
    if (r == 0 && files_read(fd, room_of((uint8_t *)text, sizeof text - 1), 0) > 0)
        text_scan_u64(text, ret);
    int len = snprintf(text, sizeof text, "%" PRIu64 "\n", ++*ret);
    if (r == 0)
        r = files_write(fd, bytes_of((uint8_t *)text, (size_t)len), 0);
    close(fd);
    return r;
}

/* Virtual nodes have none. */
static void print_hosts(const char *folder) {
    char path[CLUSTER_PATH_MAX], buffer[4096];
    FILE *f = hosts_path(folder, path, sizeof path) == 0 ? fopen(path, "re") : NULL;
    size_t n;
    while (f != NULL && (n = fread(buffer, 1, sizeof buffer, f)) > 0)
        fwrite(buffer, 1, n, stdout);
    if (f != NULL)
        fclose(f);
}

static int issue(const struct login *l) {
    struct cluster cluster;
    struct keyfile key;
    char folder[CLUSTER_PATH_MAX], text[16 * 1024], secret[KEYFILE_TEXT_MAX], why[256] = "";
    uint64_t number;
    int r = contact_find(&cluster, l->name);
    if (r != 0)
        return r;
    if (!cluster.sealed)
        return complain(cluster.name,
                        "its links have no keys: it is for this machine alone; bring it up "
                        "with --hosts");
    r = cluster_folder(cluster.name, folder, sizeof folder);
    if (r == 0)
        r = next_client(folder, &number);
    if (r == 0)
        r = keys_issue_client(folder, cluster.nodes, number, &key, why);
    if (r < 0) {
        complain(cluster.name, "no key can be made: %s", why[0] != '\0' ? why : strerror(-r));
        return STATUS_STORM;
    }
    size_t len = cluster_format(&cluster, text, sizeof text);
    fwrite(text, 1, len < sizeof text ? len : sizeof text - 1, stdout);
    fputs(MARK_HOSTS, stdout);
    print_hosts(folder);
    fputs(MARK_KEY, stdout);
    fwrite(secret, 1, keyfile_write(&key, secret), stdout);
    explicit_bzero(&key, sizeof key);
    explicit_bzero(secret, sizeof secret);
    return fflush(stdout) == 0 ? STATUS_OK : STATUS_STORM;
}

/* ---- here ---- */

static int fetch(const struct login *l, char *out, size_t cap) {
    char remote[COMMAND_MAX];
    snprintf(remote, sizeof remote, "exec %s login --issue --cluster %s", l->command, l->name);
    const char *argv[] = {l->connector, "--", l->host, remote, NULL};
    if (strcmp(l->connector, "ssh") != 0) { /* others may not know what -- is */
        argv[1] = l->host;
        argv[2] = remote;
        argv[3] = NULL;
    }
    struct errand e = {.argv = argv, .output = out, .output_cap = cap};
    int r = errand_run(&e);
    if (r < 0)
        complain(l->connector, "%s; install it, or say another: --connector", strerror(-r));
    else if (e.status != 0)
        complain(l->host, "it gave no key (status %d)", e.status);
    return r == 0 && e.status == 0 ? STATUS_OK : STATUS_STORM;
}

static int make_folder(const char *folder) {
    char home[CLUSTER_PATH_MAX];
    snprintf(home, sizeof home, "%s", folder);
    *strrchr(home, '/') = '\0';
    if (mkdir(home, 0700) < 0 && errno != EEXIST)
        return -errno;
    return mkdir(folder, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Names of nodes, as they are now. */
static int keep_hosts(const char *folder, const char *text) {
    char path[CLUSTER_PATH_MAX];
    int r = hosts_path(folder, path, sizeof path);
    if (r == 0 && *text != '\0')
        return files_replace(path, bytes_from_str(text));
    if (r == 0)
        unlink(path);
    return r;
}

static int keep(const char *folder, struct cluster *c, const char *hosts, const char *text) {
    char path[CLUSTER_PATH_MAX + 16], why[256];
    struct keyfile key;
    c->watcher = 0; /* it is not on this machine */
    int r = keyfile_parse(bytes_from_str(text), &key);
    if (r < 0 || key.kind != KEY_CLIENT)
        return complain("login", "what came holds no key; are both machines of one version?");
    r = make_folder(folder);
    snprintf(path, sizeof path, "%s/client.key", folder);
    if (r == 0 && keyring_save(path, &key, why) < 0)
        r = complain("login", "%s", why);
    else if (r < 0 || (r = keep_hosts(folder, hosts)) < 0 || (r = cluster_save(c, folder)) < 0)
        r = complain(folder, "%s", strerror(-r));
    explicit_bzero(&key, sizeof key);
    return r == 0 ? STATUS_OK : STATUS_STORM;
}

/* A cluster of that name that was brought up here is not overwritten. */
static bool is_ours(const char *folder) {
    char path[CLUSTER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/log", folder);
    return access(path, F_OK) == 0;
}

static int take(const struct login *l, char *text) {
    struct cluster c;
    struct cluster_trouble trouble;
    char folder[CLUSTER_PATH_MAX];
    char *hosts = strstr(text, MARK_HOSTS);
    char *key = hosts == NULL ? NULL : strstr(hosts, MARK_KEY);
    if (key == NULL)
        return complain(l->host, "what it said is no cluster; is its storm of this version?");
    *hosts = *key = '\0';
    int r = cluster_parse(&c, text, &trouble);
    if (r < 0)
        return complain(l->host, "its cluster: %s", trouble.words);
    r = cluster_folder(l->name, folder, sizeof folder);
    if (r < 0)
        return complain(l->name, "this cannot be a cluster's name");
    if (is_ours(folder))
        return complain(l->name,
                        "there is a cluster of that name on this machine; take another STORM_HOME");
    r = keep(folder, &c, hosts + sizeof MARK_HOSTS - 1, key + sizeof MARK_KEY - 1);
    if (r == STATUS_OK)
        printf("storm: cluster %s of %s can be used from here\n", c.name, l->host);
    return r;
}

static int log_in(const struct login *l) {
    char folder[CLUSTER_PATH_MAX];
    if (cluster_folder(l->name, folder, sizeof folder) <
        0) /* it is to be a word of a command line there */
        return complain(l->name, "this cannot be a cluster's name");
    char *text = malloc(PARCEL_MAX);
    if (text == NULL)
        return STATUS_STORM;
    int status = fetch(l, text, PARCEL_MAX);
    if (status == STATUS_OK)
        status = take(l, text);
    explicit_bzero(text, PARCEL_MAX);
    free(text);
    return status;
}

int login_main(int argc, char **argv) {
    struct login l = {.connector = "ssh", .command = "storm"};
    const char *asked = NULL;
    const struct option table[] = {
        {"cluster", OPTION_TEXT, &asked, "NAME",
         "its name there and here (default: STORM_CLUSTER, or local)"},
        {"connector", OPTION_TEXT, &l.connector, "PROGRAM",
         "instead of ssh: run with the host and a command line"},
        {"command", OPTION_TEXT, &l.command, "PATH", "storm, as the other machine finds it"},
        {"issue", OPTION_FLAG, &l.issue, NULL,
         "print a new key for another machine: what is run there"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    l.name = cluster_pick(asked);
    l.host = count > 0 ? argv[1] : NULL;
    if (l.issue)
        return count == 0 ? issue(&l)
                          : complain("login", "--issue is for this machine; leave %s out", l.host);
    if (count != 1 || l.host[0] == '-')
        return complain("login", "on which machine is the cluster's manager? storm login HOST");
    return log_in(&l);
}
