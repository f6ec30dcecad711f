/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "own-program.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_PROGRAM "/proc/self/exe"

static char noted[PATH_MAX]; /* "": nothing */

void own_program_note(void) {
        ssize_t n = readlink(OWN_PROGRAM, noted, sizeof(noted) - 1);

        noted[n > 0 ? n : 0] = '\0';
}

bool own_program_is_replaced(void) {
        struct stat own, there;

        return noted[0] != '\0' && stat(OWN_PROGRAM, &own) >= 0 && stat(noted, &there) >= 0 &&
               (own.st_ino != there.st_ino || own.st_dev != there.st_dev);
}
