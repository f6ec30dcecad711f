/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_DELAYS_H
#define MANAGER_DELAYS_H

/* When a file that has changed is looked at: */

/* after the last write: it is complete, though it is still open; */
#define WATCH_REST_USEC UINT64_C(1000000)

/* after its writer has closed it, as probes leave meanwhile; */
#define WATCH_CLOSED_USEC UINT64_C(300000)

/* after anything else, as packages move more than one file. */
#define WATCH_SETTLE_USEC UINT64_C(500000)

/* When something is tried again that cannot be had, and nothing tells when it can. */
#define WATCH_ABSENT_USEC UINT64_C(60000000)

#endif
