/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The addresses of the kernel's symbols, by a BPF program that visits each and is gone when they
 * are known. /proc/kallsyms has them, too, but not for who lacks CAP_SYSLOG, nor in a service with
 * ProtectKernelTunables=. The program is loaded with CAP_PERFMON, whatever kernel.kptr_restrict is;
 * a kernel that is locked down refuses it, as it does the others.
 */

#include "bpf/kernel-symbols.h"

#include <errno.h>

#include "bpf/iterator.h"
#include "tlob-symbols.skel.h"

int kernel_symbols_find(struct tlob_symbols *ret) {
        struct tlob_symbols_bpf *bpf;
        int r;

        bpf = tlob_symbols_bpf__open_and_load();
        if (!bpf)
                return -errno;
        /* Not where libbpf believes that maps cannot be mapped. */
        r = bpf->bss ? iterator_run(bpf->progs.find_symbols, NULL) : -EOPNOTSUPP;
        if (r >= 0)
                *ret = bpf->bss->found;
        tlob_symbols_bpf__destroy(bpf);
        if (r < 0)
                return r;
        if (ret->interrupts.begin > 0 && ret->interrupts.end > ret->interrupts.begin)
                return 0;
        ret->interrupts = (struct tlob_text){};
        return -ENXIO;
}
