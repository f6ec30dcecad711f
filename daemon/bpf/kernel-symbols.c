/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The addresses of the kernel's symbols, by a BPF program that visits each and is gone when they
 * are known. /proc/kallsyms has them, too, but not for who lacks CAP_SYSLOG, nor in a service with
 * ProtectKernelTunables=. The program is loaded with CAP_PERFMON, whatever kernel.kptr_restrict is;
 * a kernel that is locked down refuses it, as it does the others.
 */

#include "bpf/kernel-symbols.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>

#include "bpf/iterator.h"
#include "tlob-symbols.skel.h"

/*
 * libbpf finds out once what the kernel supports, and takes any error for a no. Where it believes
 * that there are no types, no functions in them or no global ones, the kernel takes our functions
 * for static: then the verifier follows each call of them, for seconds, up to its limit. This is to
 * be seen in the types that the kernel has got.
 */
static bool lacks_global_functions(const struct tlob_symbols_bpf *bpf) {
        int fd = bpf_object__btf_fd(bpf->obj), id;
        struct bpf_btf_info info = {};
        uint32_t size = sizeof(info);
        struct btf *types;
        bool is_global;

        if (fd < 0)
                return true;
        if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
                return false;
        types = btf__load_from_kernel_by_id(info.id);
        if (!types)
                return false;
        id = btf__find_by_name_kind(types, bpf_program__name(bpf->progs.find_symbols),
                                    BTF_KIND_FUNC);
        is_global = id > 0 && btf_vlen(btf__type_by_id(types, (uint32_t) id)) == BTF_FUNC_GLOBAL;
        btf__free(types);
        return !is_global;
}

int kernel_symbols_find(struct tlob_symbols *ret) {
        struct tlob_symbols_bpf *bpf;
        int r;

        bpf = tlob_symbols_bpf__open_and_load();
        if (!bpf)
                return -errno;
        /* Nor does it map variables where it believes that maps cannot be mapped. */
        if (!bpf->bss || lacks_global_functions(bpf))
                r = -EOPNOTSUPP;
        else
                r = iterator_run(bpf->progs.find_symbols, NULL);
        if (r >= 0)
                *ret = bpf->bss->found;
        tlob_symbols_bpf__destroy(bpf);
        if (r < 0)
                return r;
        if (ret->interrupts.begin > 0 && ret->interrupts.end > ret->interrupts.begin)
                return 0;
        ret->interrupts = (struct tlob_text) {};
        return -ENXIO;
}
