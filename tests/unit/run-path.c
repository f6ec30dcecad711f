/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A program that is linked with a RUNPATH, for test-library.c. It is not run. */

int main(void) {
        return 0;
}
