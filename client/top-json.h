/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_JSON_H
#define TOP_JSON_H

#include "bus-json.h"
#include "top/rows.h"
#include "top/windows.h"

/*
 * A screen of tlobctl top as an object, with a null for what is not known. Now: CLOCK_MONOTONIC, 0
 * if that is another machine's. The caller owns *ret. Returns 0 or -ENOMEM.
 */
int top_to_json(const Rows *rows, const OpenWindows *windows, bool by_unit, uint64_t now_ns,
                json_object **ret);

#endif
