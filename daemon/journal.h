/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdint.h>

#include "base/runtime-scope.h"
#include "binding/binding.h"
#include "report/violation.h"

/*
 * Structured journal entries, one function for each MESSAGE_ID of tlob-messages.h. The fields are
 * those of tlobd(8). None of them waits: journal-socket.h. Each returns 0 or a negative errno:
 * there is no journal (-ENOENT), or it has taken no entries for too long (-ENOBUFS).
 */

/*
 * Whose units the entries are about: their field is OBJECT_SYSTEMD_UNIT= or, of a user's,
 * USER_UNIT=. Holds from now on.
 */
void journal_set_scope(RuntimeScope scope);

/* A violation or a completion. */
int journal_report(const Violation *violation);

/* n reports of a binding were held back by the rate limit. */
int journal_suppression(const Binding *binding, uint64_t n);

/* n reports of all bindings were lost on their way from the kernel. */
int journal_loss(uint64_t n);

/* n entries did not reach the journal, because it took none for too long. */
int journal_unwritten(uint64_t n);

/* The binding is failed now, for its state_reason. */
int journal_binding_failure(const Binding *binding);

/* A binding that takes longer in a build of its file than in the one before. */
typedef struct BuildComparison {
        const char *before_id;
        uint64_t before_ns; /* the 99th percentile */
        uint64_t now_ns;
        uint64_t n_windows; /* of the build that is measured now */
} BuildComparison;

int journal_worse_build(const Binding *binding, const BuildComparison *comparison);

/* Its tolerance is broken now, or kept again. */
int journal_tolerance(const Binding *binding);

/* The binding was failed, and measures now. */
int journal_binding_recovery(const Binding *binding);

#endif
