/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REACH_LIBRARY_H
#define REACH_LIBRARY_H

void reach_call(void);
void reach_end(void);

#endif
