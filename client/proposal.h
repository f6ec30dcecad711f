/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROPOSAL_H
#define PROPOSAL_H

#include "output.h"
#include "trial.h"

/*
 * Shows what was measured, the most time first, and a drop-in for the unit with the best of it; as
 * JSON only the former. Returns 0, -ENODATA (there is nothing to show), or -ENOMEM.
 */
int proposal_show(Output *output, const Trial *trial, const char *unit);

#endif
