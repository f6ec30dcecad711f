/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_SYSTEM_CALL_H
#define BASE_SYSTEM_CALL_H

#include <stdint.h>

/* System calls by their names, as programs of this machine's own architecture make them. */

/* How a place that is a system call is written: "syscall:fsync". */
#define SYSTEM_CALL_PLACE "syscall:"

/* The name of the system call that a place is; NULL: it is another place. */
const char *system_call_of_place(const char *place);

/*
 * The number of a system call that can be measured. Returns 0, -ENOENT (there is none of that
 * name) or -EOPNOTSUPP, and in *ret_why what is wrong, as the end of a sentence that begins with
 * the name; -ENOMEM.
 */
int system_call_find(const char *name, uint32_t *ret_number, char **ret_why);

/* As above of any call, also of those that cannot be measured. -ENOENT: libseccomp knows none. */
int system_call_find_number(const char *name, uint32_t *ret_number);

/*
 * What a call of 32-bit programs is to those of the machine's own architecture: the one of that
 * name, or the one whose wider form it is (futex_time64, fstat64, getuid32). Returns 0 or -ENOENT:
 * there is none, as for socketcall, which is many.
 */
int system_call_of_32_bits(uint32_t number_32, uint32_t *ret_number);

/* The name of the call of that number, the caller's; NULL: there is none, or no memory. */
char *system_call_get_name(uint32_t number);

#endif
