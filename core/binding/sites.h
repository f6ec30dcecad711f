/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_SITES_H
#define BINDING_SITES_H

#include "binding/binding.h"

/*
 * From Start= and Stop= to places where a probe does no harm. Returns 0, or a negative errno with a
 * sentence in *ret_error: those of elf_file_resolve(), or -EOPNOTSUPP.
 */
int binding_resolve_sites(const Binding *binding, ElfFile *elf, BindingSites *ret,
                          char **ret_error);

/*
 * On which instruction it starts, and what the kernel does with that: "push rbp (emulated)"; NULL:
 * it is not known. Returns 0 or -ENOMEM; *ret is the caller's.
 */
int binding_describe_start(const Binding *binding, char **ret);

/*
 * How windows of a resolved binding end and what that costs, as a sentence without a full stop;
 * NULL: in one way, of which there is nothing to say. Returns 0 or -ENOMEM; *ret is the caller's.
 */
int binding_describe_stop(const Binding *binding, char **ret);

/*
 * That the kernel counts a semaphore of a resolved binding in the wrong place, and what to do, as a
 * sentence without a full stop; NULL: it does not. Returns 0 or -ENOMEM; *ret is the caller's.
 */
int binding_describe_semaphores(const Binding *binding, char **ret);

#endif
