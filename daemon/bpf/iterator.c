/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * BPF iterators that are run for what they do: to read to their end runs them. The kernel pauses
 * after a million calls.
 */

#include "bpf/iterator.h"

#include <bpf/bpf.h>

#include "base/cleanup.h"

int iterator_run(const struct bpf_program *program, const struct bpf_iter_attach_opts *opts) {
        _cleanup_close_ int fd = -EBADF;
        struct bpf_link *link;
        char nothing[1];

        link = bpf_program__attach_iter(program, opts);
        if (!link)
                return -errno;
        fd = bpf_iter_create(bpf_link__fd(link));
        (void) bpf_link__destroy(link);
        if (fd < 0)
                return -errno;
        while (read(fd, nothing, sizeof(nothing)) < 0)
                if (errno != EAGAIN && errno != EINTR)
                        return -errno;
        return 0;
}
