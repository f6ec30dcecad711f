/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_BUILD_H
#define BINDING_BUILD_H

#include "binding/binding.h"

/* How long windows took, by the build of the file: whether an upgrade has made them longer. */

/*
 * Adds to lengths, those of the windows that are measured now, what was noted of the same build.
 * Returns the build before it, owned by the binding; NULL: none is known.
 */
const PastBuild *binding_add_build(const Binding *binding, Histogram *lengths);

/* So many windows of both say whether it has become worse. */
#define BUILD_WINDOWS_MIN 1000

/*
 * Has it clearly become worse? At least a thousand windows of each; more than 2 of 100 take longer
 * than 99 of 100 did before; and the 99th percentile is at least a quarter longer, which it is in
 * *ret_before_ns and *ret_now_ns.
 */
bool lengths_are_worse(const Histogram *before, const Histogram *now, uint64_t *ret_before_ns,
                       uint64_t *ret_now_ns);

#endif
