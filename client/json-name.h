/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef JSON_NAME_H
#define JSON_NAME_H

#include "bus-json.h"

/*
 * A copy of value in which every member of an object is named as properties on D-Bus are:
 * "budget_ns" and "start-offset" become "BudgetNSec" and "StartOffset". Those of "Counters" are
 * data, and stay. The caller owns it; NULL for want of memory.
 */
json_object *json_rename(json_object *value);

#endif
