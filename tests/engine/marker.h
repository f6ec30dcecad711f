/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MARKER_H
#define MARKER_H

/* What marker.cc has in other files, each with the mark "request". */

#ifdef __cplusplus
extern "C" {
#endif

void marker_other(unsigned long n);   /* in C, in the same program */
void marker_library(unsigned long n); /* in a library */

#ifdef __cplusplus
}
#endif

#endif
