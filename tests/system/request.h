/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REQUEST_H
#define REQUEST_H

/* A request: WORK_NS of a CPU, and up to 3 ms until the file can be locked. */
void handle_request(int fd);

#endif
