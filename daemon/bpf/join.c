/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A page comes into its place, and leaves it, after a grace period of the kernel: a worker waits
 * for that, for one page at a time. Whoever asks does not wait, and may be gone when the page is
 * there.
 *
 * Who it is that asks, the kernel says (SO_PEERCRED), and that is a process which has a slot
 * because a window of a binding began in it. So a page is for processes of units that are measured,
 * whatever others ask for.
 *
 * What a process was given it can keep, mapped or as a descriptor, also when it asks again. That is
 * memory of the kernel which counts as ours. So a place is given away again only when nobody has
 * what was there any more, and a process that keeps one gets no other.
 *
 * One that asks again, and has no lane in its page, may be another program by now, without that
 * page: only when the page has left its place can be seen whether anybody still has it. If so, it
 * comes back: the program's libraries ask for themselves, and the first that has joined goes on.
 */

#include "bpf/join.h"

#include <bpf/bpf.h>
#include <fcntl.h>
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
        WORK_MAKE,   /* for the first who asks */
        WORK_RETURN, /* what the first who asks has kept comes into its place again */
        WORK_DROP,
} Work;

typedef struct Asking {
        int fd; /* of the connection */
        uint32_t pid;
} Asking;

/* To whom a page was given last. */
typedef struct Given {
        int pid_fd;   /* of the process, while the page is in its place */
        bool is_left; /* it has left the page, which is still in its place */
        uint32_t pid;
        uint32_t map_id; /* 0: to nobody, or not known */
} Given;

struct JoinServer {
        int epoll_fd;
        int listen_fd;
        dev_t socket_device; /* with inode: what we have made at path */
        ino_t socket_inode;
        int done_fd; /* the worker has done its work */
        char *path;
        LaneTable *lanes;
        TaskTable *tasks;
        JoinHandlers handlers;
        void *userdata;
        Given *given; /* of each page */
        int spare_fd; /* to have one descriptor when there are no more */
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

/* Returns the page as a descriptor, or a negative errno. */
static int place_page(const JoinServer *server) {
        uint32_t page = server->page;
        int fd, r;

        fd = server->work == WORK_MAKE ? lane_page_new()
                                       : bpf_map_get_fd_by_id(server->given[page].map_id);
        if (fd < 0)
                return fd;
        r = lane_page_place(server->lanes->maps.pages, page, fd);
        if (r < 0) {
                safe_close(fd);
                return r;
        }
        return fd;
}

static void *do_work(void *userdata) {
        JoinServer *server = userdata;

        if (server->work == WORK_DROP)
                (void) bpf_map_delete_elem(server->lanes->maps.pages, &server->page);
        else
                server->map_fd = place_page(server);
        (void) eventfd_write(server->done_fd, 1);
        return NULL;
}

static void stop_asking(JoinServer *server, size_t i) {
        safe_close(server->asking[i].fd);
        server->asking[i] = server->asking[--server->n_asking];
}

/* Has somebody kept what was in that place, which is empty now? */
static bool is_kept(JoinServer *server, size_t page) {
        Given *given = &server->given[page];
        int fd;

        if (given->map_id == 0)
                return false;
        fd = bpf_map_get_fd_by_id(given->map_id);
        if (fd == -ENOENT)
                given->map_id = 0;
        safe_close(fd);
        return given->map_id > 0;
}

static size_t find_left(const JoinServer *server) {
        for (size_t i = 0; i < server->lanes->n; i++)
                if (!server->lanes->pages[i].lanes && server->given[i].is_left)
                        return i;
        return SIZE_MAX;
}

static size_t find_free(JoinServer *server) {
        for (size_t i = 0; i < server->lanes->n; i++)
                if (!server->lanes->pages[i].lanes && !server->given[i].is_left &&
                    !is_kept(server, i))
                        return i;
        return SIZE_MAX;
}

static size_t find_kept(JoinServer *server, uint32_t pid) {
        for (size_t i = 0; i < server->lanes->n; i++)
                if (server->given[i].pid == pid && !server->lanes->pages[i].lanes &&
                    !server->given[i].is_left && is_kept(server, i))
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
        page = find_left(server);
        if (page != SIZE_MAX) {
                begin_work(server, WORK_DROP, page);
                return;
        }
        if (server->n_asking == 0)
                return;
        page = find_kept(server, server->asking[0].pid);
        if (page != SIZE_MAX)
                begin_work(server, WORK_RETURN, page);
        else {
                page = find_free(server);
                if (page != SIZE_MAX)
                        begin_work(server, WORK_MAKE, page);
        }
        /* Nobody waits for what is not to be had. */
        while (server->work == WORK_NONE && server->n_asking > 0)
                stop_asking(server, 0);
}

static void leave_page(JoinServer *server, size_t page) {
        (void) server->handlers.settle((uint32_t) page, server->userdata);
        lane_table_remove(server->lanes, (uint32_t) page);
        server->given[page].pid_fd = safe_close(server->given[page].pid_fd);
        server->given[page].is_left = true;
}

/* A process has that page until it ends. */
static int follow(JoinServer *server, size_t page) {
        int fd;

        fd = pidfd_open((pid_t) server->lanes->pages[page].pid, 0);
        if (fd < 0)
                return -errno;
        server->given[page].pid_fd = fd;
        return watch(server, fd, page);
}

static uint32_t id_of_map(int fd) {
        struct bpf_map_info info = {};
        uint32_t size = sizeof(info);

        return bpf_obj_get_info_by_fd(fd, &info, &size) < 0 ? 0 : info.id;
}

static int send_page(const Asking *asking, int map_fd) {
        static Packet packet;

        packet_init(&packet);
        packet_put_number(&packet, 0);
        return packet_send(asking->fd, &packet, map_fd);
}

/* It is in its place: it becomes that of the process, which has it already if it is returned. */
static void give_page(JoinServer *server, const Asking *asking, Work work) {
        size_t page = server->page;

        if (lane_table_add(server->lanes, server->page, asking->pid, server->map_fd) < 0) {
                server->given[page].is_left = true;
                return;
        }
        server->given[page].pid = asking->pid;
        server->given[page].map_id = id_of_map(server->map_fd);
        if (follow(server, page) < 0 ||
            (work == WORK_MAKE && send_page(asking, server->map_fd) < 0))
                leave_page(server, page);
}

static void end_work(JoinServer *server) {
        Work work = server->work;

        server->work = WORK_NONE;
        if (work == WORK_DROP) {
                server->given[server->page].is_left = false;
                return;
        }
        if (work == WORK_NONE)
                return;
        if (server->map_fd >= 0 && server->n_asking > 0)
                give_page(server, &server->asking[0], work);
        else if (server->map_fd >= 0)
                server->given[server->page].is_left = true;
        server->map_fd = safe_close(server->map_fd);
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

/* Who asks is to hear that there is nothing; else the socket would be readable for ever. */
static void turn_away(JoinServer *server) {
        server->spare_fd = safe_close(server->spare_fd);
        safe_close(accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        server->spare_fd = fcntl(server->done_fd, F_DUPFD_CLOEXEC, 3);
}

/* More may wait: there will be another turn. */
static void accept_some(JoinServer *server) {
        for (unsigned i = 0; i < ACCEPTED_AT_ONCE; i++) {
                _cleanup_close_ int fd = -EBADF;
                struct ucred peer = {};
                socklen_t size = sizeof(peer);

                fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                        turn_away(server);
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

/* What is at the path of another daemon that has ended, and of none that listens there. */
static int remove_stale(const struct sockaddr_un *address) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *) address, sizeof(*address)) >= 0 ||
            errno == EAGAIN)
                return -EADDRINUSE;
        return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int listen_at(JoinServer *server) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct stat st;
        int r;

        if (strlen(server->path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        (void) strcpy(address.sun_path, server->path);
        server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->listen_fd < 0)
                return -errno;
        r = remove_stale(&address);
        if (r < 0)
                return r;
        if (bind(server->listen_fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            stat(server->path, &st) < 0)
                return -errno;
        server->socket_device = st.st_dev;
        server->socket_inode = st.st_ino;
        if (chmod(server->path, 0666) < 0 || listen(server->listen_fd, ASKING_MAX) < 0)
                return -errno;
        return watch(server, server->listen_fd, EVENT_LISTEN);
}

/* What lies in a map of maps is told by its id. */
static void note_inherited(JoinServer *server, uint32_t page) {
        uint32_t id;

        server->given[page].pid = server->lanes->pages[page].pid;
        if (bpf_map_lookup_elem(server->lanes->maps.pages, &page, &id) >= 0)
                server->given[page].map_id = id;
}

static int set_up(JoinServer *server, const char *path) {
        size_t n = server->lanes->n;

        server->path = strdup(path);
        server->given = calloc(n, sizeof(*server->given));
        if (!server->path || !server->given)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                server->given[i].pid_fd = -EBADF;
        server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        server->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (server->epoll_fd < 0 || server->done_fd < 0)
                return -errno;
        server->spare_fd = fcntl(server->done_fd, F_DUPFD_CLOEXEC, 3);
        /* Those that a daemon before this one has given away. */
        for (size_t i = 0; i < n; i++)
                if (server->lanes->pages[i].lanes) {
                        note_inherited(server, (uint32_t) i);
                        if (follow(server, i) < 0)
                                leave_page(server, i);
                }
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
                .spare_fd = -EBADF,
                .map_fd = -EBADF,
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

static void remove_own(const JoinServer *server) {
        struct stat st;

        if (lstat(server->path, &st) >= 0 && st.st_dev == server->socket_device &&
            st.st_ino == server->socket_inode)
                (void) unlink(server->path);
}

JoinServer *join_server_free(JoinServer *server) {
        if (!server)
                return NULL;
        if (server->listen_fd >= 0) {
                (void) epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->listen_fd, NULL);
                remove_own(server);
                safe_close(server->listen_fd);
        }
        for (size_t i = 0; server->given && i < server->lanes->n; i++)
                safe_close(server->given[i].pid_fd);
        await_worker(server);
        safe_close(server->map_fd);
        while (server->n_asking > 0)
                stop_asking(server, 0);
        safe_close(server->epoll_fd);
        safe_close(server->done_fd);
        safe_close(server->spare_fd);
        free(server->path);
        free(server->given);
        free(server);
        return NULL;
}
