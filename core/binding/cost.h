/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_COST_H
#define BINDING_COST_H

#include "binding/binding.h"

/* Of a binding with has_frame, where its back end taxes unwinding. */
#define BINDING_UNWINDING_COST                                                                     \
        "While this binding is set, each longjmp() and each C++ exception of any program takes "   \
        "about 1 us longer"

/* Reads what instructions the probes of resolved sites are on, and of what kinds these are. */
void binding_read_probes(Binding *binding, int fd);

/*
 * What the probes of a resolved binding take from the thread that has a window, as words for a
 * sentence; NULL: that is not known, or it has none in a file. prices may be NULL: those of this
 * machine are not known. Returns 0 or -ENOMEM; *ret is the caller's.
 */
int binding_describe_price(const Binding *binding, const ProbePrices *prices, char **ret);

/*
 * Who pays for the probes of a resolved binding that are in every process that maps its file, and
 * how much, as a sentence without a full stop; NULL: nobody else than its unit, which asked for
 * it. The same for one that has no file. users may be NULL: they could not be counted. The rest is
 * as above. Returns 0 or -ENOMEM; *ret is the caller's.
 */
int binding_describe_cost(const Binding *binding, const FileUsers *users, const ProbePrices *prices,
                          char **ret);

#endif
