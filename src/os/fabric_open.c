/* SPDX-License-Identifier: MIT */
/* A fabric's provider: which one, what is asked of it, and everything that is opened and closed.
 *
 * Only what puts need is asked for: nobody can read our memory, and writing takes a key, drawn at random
 * where the provider lets us choose. Whatever modes of registration a provider may want are handled,
 * so nearly every one fits. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "os/fabric_inside.h"

int fabric_error(long error) {
    if (error == 0)
        return 0;
    error = error < 0 ? -error : error;
    return error < FI_ERRNO_OFFSET ? (int)-error : -EIO;
}

/* Says what did not work; returns -errno. */
static int failed(char why[FABRIC_WHY_BYTES], const char *what, long error) {
    snprintf(why, FABRIC_WHY_BYTES, "%s: %s", what, fi_strerror((int)(error < 0 ? -error : error)));
    return fabric_error(error);
}

/* ---- which provider ---- */

static struct fi_info *hints_new(const char *provider) {
    struct fi_info *h = fi_allocinfo();
    if (h == NULL)
        return NULL;
    h->caps = FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
    h->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
    h->ep_attr->type = FI_EP_RDM;
    h->tx_attr->op_flags = FI_DELIVERY_COMPLETE; /* that it can, see write_part */
    h->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    h->domain_attr->threading = FI_THREAD_DOMAIN;
    h->domain_attr->control_progress = FI_PROGRESS_MANUAL; /* no threads for us */
    h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    h->domain_attr->resource_mgmt = FI_RM_ENABLED;
    if (provider != NULL && (h->fabric_attr->prov_name = strdup(provider)) == NULL) {
        fi_freeinfo(h);
        return NULL;
    }
    return h;
}

/* Is its IP address this one, or has it none? */
static bool is_at(const struct fi_info *info, const char *source) {
    struct in_addr four;
    struct in6_addr six;
    const struct sockaddr *at = info->src_addr;
    if (info->addr_format != FI_SOCKADDR && info->addr_format != FI_SOCKADDR_IN &&
        info->addr_format != FI_SOCKADDR_IN6)
        return true;
    if (at == NULL)
        return false;
    if (at->sa_family == AF_INET)
        return inet_pton(AF_INET, source, &four) == 1 &&
               memcmp(&four, &((const struct sockaddr_in *)info->src_addr)->sin_addr,
                      sizeof four) == 0;
    return at->sa_family == AF_INET6 && inet_pton(AF_INET6, source, &six) == 1 &&
           memcmp(&six, &((const struct sockaddr_in6 *)info->src_addr)->sin6_addr, sizeof six) == 0;
}

static bool suits(const struct fi_info *info, const struct fabric_config *c) {
    if (c->provider == NULL && strncmp(info->fabric_attr->prov_name, "shm", 3) == 0)
        return false; /* reaches nobody on another machine */
    return c->source == NULL || is_at(info, c->source);
}

/* libfabric lists the fastest first. */
static int choose(struct fabric *f, char why[FABRIC_WHY_BYTES]) {
    struct fi_info *hints = hints_new(f->config.provider), *list = NULL;
    if (hints == NULL)
        return -ENOMEM;
    int r = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list);
    fi_freeinfo(hints);
    const struct fi_info *info = r == 0 ? list : NULL;
    while (info != NULL && !suits(info, &f->config))
        info = info->next;
    if (info != NULL)
        f->info = fi_dupinfo(info);
    fi_freeinfo(list);
    if (f->info != NULL)
        return 0;
    const char *name = f->config.provider == NULL ? "any" : f->config.provider;
    snprintf(why, FABRIC_WHY_BYTES, "libfabric has no provider %s%s%s with RMA writes", name,
             f->config.source == NULL ? "" : " at ",
             f->config.source == NULL ? "" : f->config.source);
    return -ENODEV;
}

int fabric_ofi_providers(void (*tell)(void *context, const char *name, const char *domain),
                         void *context) {
    struct fi_info *hints = hints_new(NULL), *list = NULL;
    if (hints == NULL)
        return -ENOMEM;
    int r = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list);
    fi_freeinfo(hints);
    for (const struct fi_info *i = r == 0 ? list : NULL; i != NULL; i = i->next)
        tell(context, i->fabric_attr->prov_name, i->domain_attr->name);
    fi_freeinfo(list);
    return fabric_error(r);
}

/* ---- memory ---- */

static uint64_t draw_key(const struct fabric *f) {
    uint64_t key = 0;
    if ((f->info->domain_attr->mr_mode & FI_MR_PROV_KEY) != 0)
        return 0;
    if (getrandom(&key, sizeof key, 0) != sizeof key)
        return 0;
    size_t bytes = f->info->domain_attr->mr_key_size;
    return bytes >= sizeof key ? key : key & (((uint64_t)1 << 8 * bytes) - 1);
}

int fabric_register(struct fabric *f, struct room memory, uint64_t access, struct fid_mr **ret) {
    struct fid_mr *mr = NULL;
    int r = -FI_ENOKEY;
    for (int i = 0; i < 8 && r == -FI_ENOKEY; i++) /* a key that is taken is drawn again */
        r = fi_mr_reg(f->domain, memory.at, memory.len, access, 0, draw_key(f), 0, &mr, NULL);
    if (r == 0 && (f->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
        r = fi_mr_bind(mr, &f->ep->fid, 0);
        if (r == 0)
            r = fi_mr_enable(mr);
        if (r != 0)
            fi_close(&mr->fid);
    }
    if (r == 0)
        *ret = mr;
    return fabric_error(r);
}

/* ---- addresses: length and name of the provider, then its own address ---- */

static int take_address(struct fabric *f) {
    const char *name = f->info->fabric_attr->prov_name;
    size_t name_len = strlen(name);
    if (name_len > UINT8_MAX || 1 + name_len >= sizeof f->address)
        return -FI_ETOOSMALL;
    f->address[0] = (uint8_t)name_len;
    memcpy(f->address + 1, name, name_len);
    f->raw_len = sizeof f->address - 1 - name_len;
    int r = fi_getname(&f->ep->fid, f->address + 1 + name_len, &f->raw_len);
    f->address_len = 1 + name_len + f->raw_len;
    return r;
}

int fabric_raw(const struct fabric *f, struct bytes address, struct bytes *ret) {
    size_t before = f->address_len - f->raw_len;
    if (address.len == 0 || address.len > FABRIC_ADDRESS_BYTES_MAX ||
        address.len <= (size_t)1 + address.at[0])
        return -EBADMSG;
    if (address.len < before || memcmp(address.at, f->address, before) != 0)
        return -EPROTONOSUPPORT;
    *ret = bytes_of(address.at + before, address.len - before);
    if (f->info->addr_format == FI_ADDR_STR)
        return ret->at[ret->len - 1] == '\0' ? 0 : -EBADMSG;
    return ret->len == f->raw_len ? 0 : -EBADMSG;
}

/* ---- all of it ---- */

int fabric_receive(struct fabric *f, struct receive *r) {
    void *desc = f->receives_mr == NULL ? NULL : fi_mr_desc(f->receives_mr);
    return fabric_error(
        fi_recv(f->ep, r->bytes, sizeof r->bytes, desc, FI_ADDR_UNSPEC, &r->provider));
}

static int post_receives(struct fabric *f) {
    size_t most = f->info->rx_attr->size;
    uint32_t count = most < RECEIVES ? (uint32_t)most : RECEIVES;
    f->receives = calloc(count, sizeof *f->receives);
    if (f->receives == NULL)
        return -ENOMEM;
    int r = 0;
    if ((f->info->domain_attr->mr_mode & FI_MR_LOCAL) != 0)
        r = fabric_register(f, room_of(f->receives, count * sizeof *f->receives), FI_RECV,
                            &f->receives_mr);
    for (uint32_t i = 0; i < count && r == 0; i++)
        r = fabric_receive(f, &f->receives[i]);
    f->receive_count = count;
    return r;
}

/* With a descriptor to wait for if the provider has such. */
static int open_queue(struct fabric *f) {
    struct fi_cq_attr attr = {.size = f->config.puts_max + RECEIVES + FABRIC_ARRIVALS_MAX,
                              .format = FI_CQ_FORMAT_DATA,
                              .wait_obj = FI_WAIT_FD};
    int r = fi_cq_open(f->domain, &attr, &f->cq, NULL);
    if (r == 0)
        r = fi_control(&f->cq->fid, FI_GETWAIT, &f->wait.fd);
    if (r == 0)
        r = loop_add(f->config.loop, &f->wait, EPOLLIN);
    if (r == 0)
        return 0;
    f->wait.fd = -1;
    if (f->cq != NULL)
        fi_close(&f->cq->fid);
    f->cq = NULL;
    attr.wait_obj = FI_WAIT_NONE;
    return fi_cq_open(f->domain, &attr, &f->cq, NULL);
}

static int open_endpoint(struct fabric *f) {
    int r = fi_endpoint(f->domain, f->info, &f->ep, NULL);
    if (r == 0)
        r = fi_ep_bind(f->ep, &f->av->fid, 0);
    if (r == 0)
        r = fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV);
    return r == 0 ? fi_enable(f->ep) : r;
}

static int open_timer(struct fabric *f) {
    f->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (f->timer.fd < 0)
        return -errno;
    int r = loop_add(f->config.loop, &f->timer, EPOLLIN | EPOLLET);
    if (r < 0) {
        close(f->timer.fd);
        f->timer.fd = -1;
    }
    return r;
}

int fabric_open(struct fabric *f, char why[FABRIC_WHY_BYTES]) {
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    int r = choose(f, why);
    if (r < 0)
        return r;
    if (f->info->domain_attr->av_type != FI_AV_UNSPEC)
        av.type = f->info->domain_attr->av_type;
    f->info->tx_attr->op_flags = 0; /* said with every write */
    if ((r = fi_fabric(f->info->fabric_attr, &f->fabric, NULL)) != 0)
        return failed(why, "fabric", r);
    if ((r = fi_domain(f->fabric, f->info, &f->domain, NULL)) != 0)
        return failed(why, "domain", r);
    if ((r = fi_av_open(f->domain, &av, &f->av, NULL)) != 0)
        return failed(why, "address vector", r);
    if ((r = open_queue(f)) != 0)
        return failed(why, "completion queue", r);
    if ((r = open_endpoint(f)) != 0)
        return failed(why, "endpoint", r);
    if ((r = take_address(f)) != 0)
        return failed(why, "address", r);
    if ((r = post_receives(f)) != 0)
        return failed(why, "receives", r);
    if ((r = open_timer(f)) != 0)
        return failed(why, "timer", r);
    uint64_t most = f->info->ep_attr->max_msg_size, wanted = f->config.part_bytes_max;
    f->part_bytes_max = wanted != 0 && wanted < most ? wanted : most;
    f->notes_by_message =
        f->config.notes_by_message || f->info->domain_attr->cq_data_size < NOTE_BYTES;
    return 0;
}

static void close_one(struct fid *fid) {
    if (fid != NULL)
        fi_close(fid);
}

#define CLOSE(object) close_one((object) == NULL ? NULL : &(object)->fid)

void fabric_close(struct fabric *f) {
    if (f->wait.fd >= 0)
        loop_remove(f->config.loop, &f->wait); /* the descriptor is the queue's */
    if (f->timer.fd >= 0) {
        loop_remove(f->config.loop, &f->timer);
        close(f->timer.fd);
    }
    CLOSE(f->receives_mr);
    CLOSE(f->ep);
    CLOSE(f->cq);
    CLOSE(f->av);
    CLOSE(f->domain);
    CLOSE(f->fabric);
    fi_freeinfo(f->info);
    free(f->receives);
}
