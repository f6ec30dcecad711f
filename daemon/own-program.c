/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "own-program.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program.h"

static char *noted; /* NULL: nothing */

void own_program_note(void) {
        free(noted);
        noted = NULL;
        (void) program_of_process((uint32_t) getpid(), &noted);
}

bool own_program_is_replaced(void) {
        struct stat own, there;

        return noted && stat("/proc/self/exe", &own) >= 0 && stat(noted, &there) >= 0 &&
               (own.st_ino != there.st_ino || own.st_dev != there.st_dev);
}
