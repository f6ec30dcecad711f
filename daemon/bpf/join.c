/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A page comes into its place, and leaves it, after a grace period of the kernel: a worker waits
 * for that, for one page at a time. Whoever asks does not wait, and may be gone when the page is
 * there.
 *
 * Who it is that asks, the kernel says (SO_PEERCRED), and that is a process which has a slot
 * because a window of a binding began in it. So a page is for processes of units that are measured,
 * whatever others ask for.
 */

#include "bpf/join.h"

#include <bpf/bpf.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "worker.h"

#define ASKING_MAX       64
#define ACCEPTED_AT_ONCE 8

/* What is being done with a page. */
typedef enum Work {
        WORK_NONE,
        WORK_MAKE, /* for the first who asks */
        WORK_DROP,
} Work;

typedef struct Asking {
        int fd; /* of the connection */
        uint32_t pid;
} Asking;

struct JoinServer {
        int epoll_fd;
        int listen_fd;
        int done_fd; /* the worker has done its work */
        char *path;
        LaneTable *lanes;
        TaskTable *tasks;
        JoinHandlers handlers;
        void *userdata;
        int *pid_fds;  /* of the processes that have pages */
        bool *is_left; /* pages that a process has left, which are still in their places */
        Asking asking[ASKING_MAX];
        size_t n_asking;

        /* The worker's, while there is some. */
        Work work;
        uint32_t page;
        int map_fd; /* or a negative errno */
};

/* In the data of an event: a page, or one of these. */
#define EVENT_LISTEN UINT64_MAX
#define EVENT_DONE   (UINT64_MAX - 1)

static int watch(const JoinServer *server, int fd, uint64_t what) {
        struct epoll_event event = { .events = EPOLLIN, .data.u64 = what };

        return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void *do_work(void *userdata) {
        JoinServer *server = userdata;
        uint32_t page = server->page;

        if (server->work == WORK_MAKE) {
                int r;

                server->map_fd = lane_page_new();
                r = server->map_fd < 0
                            ? 0
                            : lane_page_place(server->lanes->maps.pages, page, server->map_fd);
                if (r < 0) {
                        safe_close(server->map_fd);
                        server->map_fd = r;
                }
        } else
                (void) bpf_map_delete_elem(server->lanes->maps.pages, &page);
        (void) eventfd_write(server->done_fd, 1);
        return NULL;
}

static void stop_asking(JoinServer *server, size_t i) {
        safe_close(server->asking[i].fd);
        server->asking[i] = server->asking[--server->n_asking];
}

static size_t find_page(const JoinServer *server, bool is_left) {
        for (size_t i = 0; i < server->lanes->n; i++)
                if (!server->lanes->pages[i].lanes && server->is_left[i] == is_left)
                        return i;
        return SIZE_MAX;
}

static void begin_work(JoinServer *server, Work work, size_t page) {
        server->work = work;
        server->page = (uint32_t) page;
        server->map_fd = -EBADF;
        if (!worker_start(do_work, server))
                server->work = WORK_NONE;
}

static void begin_next(JoinServer *server) {
        size_t page;

        if (server->work != WORK_NONE)
                return;
        page = find_page(server, true);
        if (page != SIZE_MAX) {
                begin_work(server, WORK_DROP, page);
                return;
        }
        page = find_page(server, false);
        if (server->n_asking > 0 && page != SIZE_MAX)
                begin_work(server, WORK_MAKE, page);
        /* Nobody waits for what is not to be had. */
        while (server->work == WORK_NONE && server->n_asking > 0)
                stop_asking(server, 0);
}

static void leave_page(JoinServer *server, size_t page) {
        (void) server->handlers.settle((uint32_t) page, server->userdata);
        lane_table_remove(server->lanes, (uint32_t) page);
        server->pid_fds[page] = safe_close(server->pid_fds[page]);
        server->is_left[page] = true;
}

/* A process has that page until it ends. */
static int follow(JoinServer *server, size_t page) {
        int fd;

        fd = pidfd_open((pid_t) server->lanes->pages[page].pid, 0);
        if (fd < 0)
                return -errno;
        server->pid_fds[page] = fd;
        return watch(server, fd, page);
}

static void give_page(JoinServer *server, size_t page, const Asking *asking, int map_fd) {
        static Packet packet;

        if (lane_table_add(server->lanes, (uint32_t) page, asking->pid, map_fd) < 0) {
                server->is_left[page] = true;
                return;
        }
        packet_init(&packet);
        packet_put_number(&packet, 0);
        if (follow(server, page) < 0 || packet_send(asking->fd, &packet, map_fd) < 0)
                leave_page(server, page);
}

static void end_work(JoinServer *server) {
        Work work = server->work;

        server->work = WORK_NONE;
        if (work == WORK_DROP)
                server->is_left[server->page] = false;
        if (work != WORK_MAKE)
                return;
        if (server->map_fd >= 0 && server->n_asking > 0)
                give_page(server, server->page, &server->asking[0], server->map_fd);
        else if (server->map_fd >= 0)
                server->is_left[server->page] = true;
        safe_close(server->map_fd);
        if (server->n_asking > 0)
                stop_asking(server, 0);
}

/* It may be what a process has become that had one. */
static bool may_join(JoinServer *server, uint32_t pid) {
        size_t page;

        if (pid == 0 || !task_table_has_process(server->tasks, pid))
                return false;
        for (size_t i = 0; i < server->n_asking; i++)
                if (server->asking[i].pid == pid)
                        return false;
        page = lane_table_find(server->lanes, pid);
        if (page == SIZE_MAX)
                return true;
        if (lane_table_is_in_use(server->lanes, (uint32_t) page))
                return false;
        leave_page(server, page);
        return true;
}

/* More may wait: there will be another turn. */
static void accept_some(JoinServer *server) {
        for (unsigned i = 0; i < ACCEPTED_AT_ONCE; i++) {
                _cleanup_close_ int fd = -EBADF;
                struct ucred peer = {};
                socklen_t size = sizeof(peer);

                fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd < 0)
                        return;
                if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
                    server->n_asking == ASKING_MAX || !may_join(server, (uint32_t) peer.pid))
                        continue;
                server->asking[server->n_asking++] =
                        (Asking) { .fd = TAKE_FD(fd), .pid = (uint32_t) peer.pid };
        }
}

static void dispatch(JoinServer *server, uint64_t what) {
        eventfd_t unused;

        switch (what) {
        case EVENT_LISTEN:
                accept_some(server);
                return;
        case EVENT_DONE:
                if (eventfd_read(server->done_fd, &unused) >= 0)
                        end_work(server);
                return;
        default:
                if (what < server->lanes->n && server->lanes->pages[what].lanes)
                        leave_page(server, what);
        }
}

void join_server_dispatch(JoinServer *server) {
        struct epoll_event events[16];
        int n;

        n = epoll_wait(server->epoll_fd, events, ELEMENTSOF(events), 0);
        for (int i = 0; i < n; i++)
                dispatch(server, events[i].data.u64);
        begin_next(server);
}

int join_server_get_fd(const JoinServer *server) {
        return server->epoll_fd;
}

static int listen_at(JoinServer *server) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (strlen(server->path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        (void) strcpy(address.sun_path, server->path);
        server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->listen_fd < 0)
                return -errno;
        if (unlink(server->path) < 0 && errno != ENOENT)
                return -errno;
        if (bind(server->listen_fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            chmod(server->path, 0666) < 0 || listen(server->listen_fd, ASKING_MAX) < 0)
                return -errno;
        return watch(server, server->listen_fd, EVENT_LISTEN);
}

static int set_up(JoinServer *server, const char *path) {
        size_t n = server->lanes->n;

        server->path = strdup(path);
        server->pid_fds = calloc(n, sizeof(*server->pid_fds));
        server->is_left = calloc(n, sizeof(*server->is_left));
        if (!server->path || !server->pid_fds || !server->is_left)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                server->pid_fds[i] = -EBADF;
        server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        server->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (server->epoll_fd < 0 || server->done_fd < 0)
                return -errno;
        /* Those that a daemon before this one has given away. */
        for (size_t i = 0; i < n; i++)
                if (server->lanes->pages[i].lanes && follow(server, i) < 0)
                        leave_page(server, i);
        return watch(server, server->done_fd, EVENT_DONE);
}

int join_server_new(const char *path, LaneTable *lanes, TaskTable *tasks,
                    const JoinHandlers *handlers, void *userdata, JoinServer **ret) {
        JoinServer *server;
        int r;

        server = calloc(1, sizeof(*server));
        if (!server)
                return -ENOMEM;
        *server = (JoinServer) {
                .epoll_fd = -EBADF,
                .listen_fd = -EBADF,
                .done_fd = -EBADF,
                .lanes = lanes,
                .tasks = tasks,
                .handlers = *handlers,
                .userdata = userdata,
        };
        r = set_up(server, path);
        if (r >= 0)
                r = listen_at(server);
        if (r < 0) {
                join_server_free(server);
                return r;
        }
        *ret = server;
        return 0;
}

static void await_worker(const JoinServer *server) {
        struct pollfd done = { .fd = server->done_fd, .events = POLLIN };
        eventfd_t unused;

        if (server->work == WORK_NONE)
                return;
        while (eventfd_read(server->done_fd, &unused) < 0)
                (void) poll(&done, 1, -1);
}

JoinServer *join_server_free(JoinServer *server) {
        if (!server)
                return NULL;
        if (server->listen_fd >= 0) {
                (void) epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->listen_fd, NULL);
                (void) unlink(server->path);
                safe_close(server->listen_fd);
        }
        for (size_t i = 0; server->pid_fds && i < server->lanes->n; i++)
                safe_close(server->pid_fds[i]);
        await_worker(server);
        if (server->work == WORK_MAKE)
                safe_close(server->map_fd);
        while (server->n_asking > 0)
                stop_asking(server, 0);
        safe_close(server->epoll_fd);
        safe_close(server->done_fd);
        free(server->path);
        free(server->pid_fds);
        free(server->is_left);
        free(server);
        return NULL;
}
