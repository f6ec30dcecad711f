/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "elf/exits.h"

#include <stdlib.h>

void function_exits_done(FunctionExits *exits) {
        free(exits->offsets);
        free(exits->successor);
        free(exits->several);
        *exits = (FunctionExits) {};
}
