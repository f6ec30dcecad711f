/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_ITERATOR_H
#define BPF_ITERATOR_H

#include <bpf/libbpf.h>

/*
 * Runs a program that the kernel calls for each of something, and that writes nothing, until it has
 * seen all. opts: which; may be NULL. Returns 0 or a negative errno.
 */
int iterator_run(const struct bpf_program *program, const struct bpf_iter_attach_opts *opts);

#endif
