/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_JOIN_H
#define BPF_JOIN_H

#include "bpf/lanes.h"
#include "bpf/tasks.h"

/*
 * Processes join: each asks at a socket, and gets a page of its own, once, if a window of its has
 * been measured. It loses it when it ends, or when what it has become by exec() asks again.
 */

typedef struct JoinServer JoinServer;

/* What is asked of the programs. */
typedef struct JoinHandlers {
        /* What is left in the lanes of that page is put into the books, and nobody has them. */
        int (*settle)(uint32_t page, void *userdata);
} JoinHandlers;

/*
 * Listens at path, where nothing else of that name stays. The tables stay the caller's. Returns 0,
 * or a negative errno: then nobody can join. -EADDRINUSE: another daemon listens there.
 */
int join_server_new(const char *path, LaneTable *lanes, TaskTable *tasks,
                    const JoinHandlers *handlers, void *userdata, JoinServer **ret);

/* Waits for its worker. The socket is gone; pages stay. */
JoinServer *join_server_free(JoinServer *server);

/* Readable when join_server_dispatch() has something to do, which does not wait. */
int join_server_get_fd(const JoinServer *server);
void join_server_dispatch(JoinServer *server);

#endif
