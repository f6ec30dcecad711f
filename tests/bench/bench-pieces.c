/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What each piece costs that a window is made of: a look at the clock, into a map, an instruction
 * that locks. Each is a program on a probe of its own, which repeats it and looks at the clock.
 *
 * usage: bench-pieces ROUNDS
 */

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bench.h"
#include "bpf/uprobe.h"
#include "pieces.skel.h"

#define TIMES 1000 /* as in the programs */

BENCH_DEFINE_TARGET(piece, BENCH_PUSH);

static int attach(const struct bpf_program *program, bool multi, Uprobe **ret) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        int r;

        r = bench_resolve("piece", "1h", &binding, &file);
        if (r < 0)
                return r;
        r = uprobe_attach(
                &(UprobeSpec) {
                        .prog_fd = bpf_program__fd(program),
                        .multi = multi,
                        .file_fd = file->fd,
                        .offsets = &binding->resolved.sites.start.offset,
                        .n_offsets = 1,
                },
                ret);
        return r < 0 ? bench_fail(r, "Failed to set a probe") : 0;
}

static int measure(const struct pieces_bpf *pieces, const struct bpf_program *program, bool multi,
                   unsigned round) {
        Uprobe *uprobe;
        int r;

        r = attach(program, multi, &uprobe);
        if (r < 0)
                return r;
        /* The first one warms everything up. */
        piece();
        pieces->bss->took_ns = 0;
        piece();
        uprobe_detach(uprobe);
        if (pieces->bss->took_ns == 0)
                return bench_fail(-EBADMSG, "A program did not run");
        bench_sample(round, (double) pieces->bss->took_ns / TIMES, "piece.%s",
                     bpf_program__name(program));
        return 0;
}

static int run(const struct pieces_bpf *pieces, bool multi, unsigned n_rounds) {
        struct bpf_program *program;
        int r;

        for (unsigned round = 1; round <= n_rounds; round++)
                bpf_object__for_each_program(program, pieces->obj) {
                        r = measure(pieces, program, multi, round);
                        if (r < 0)
                                return r;
                }
        return 0;
}

int main(int argc, char *argv[]) {
        unsigned n_rounds = bench_argument(argc, argv, 1, 20);
        bool multi = uprobe_multi_is_supported();
        struct bpf_program *program;
        struct pieces_bpf *pieces;
        int r;

        r = bench_pin();
        if (r < 0)
                return EXIT_FAILURE;
        pieces = pieces_bpf__open();
        if (!pieces)
                return bench_fail(-errno, "Failed to open the BPF programs"), EXIT_FAILURE;
        bpf_object__for_each_program(program, pieces->obj) if (multi) uprobe_multi_prepare(program);
        r = pieces_bpf__load(pieces);
        r = r < 0 ? bench_fail(r, "Failed to load the BPF programs") : run(pieces, multi, n_rounds);
        pieces_bpf__destroy(pieces);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
