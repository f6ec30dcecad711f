/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Any bytes as the answer of a process that reads files, which could have become anything: what is
 * taken is sound, and what is shown is text. The same as what the tlobd of a user sends, or gets.
 * And as a line of /proc/PID/maps.
 */

#include <fcntl.h>

#include "backend/wire.h"
#include "base/sentence.h"
#include "binding/file.h"
#include "file/binding-question.h"
#include "fuzz.h"

static bool is_text(const char *s) {
        return !s || text_is_printable(s);
}

static void check_site(const ElfSite *site) {
        fuzz_assert(is_text(site->function) && site->n_places <= ELF_PLACES_MAX);
}

static void check_places(const ElfArgumentPlaces *places) {
        fuzz_assert(places->n > 0 && places->n <= ELF_ARGUMENT_PLACES_MAX);
        for (size_t i = 0; i < places->n; i++) {
                const ElfArgument *argument = &places->places[i].argument;

                fuzz_assert(argument->kind < ELF_ARGUMENT_N_KINDS &&
                            argument->base < ELF_REGISTERS_SIZE &&
                            argument->index < ELF_REGISTERS_SIZE);
        }
}

static void check_key(const BindingSites *sites) {
        if (!sites->key)
                return;
        fuzz_assert(sites->key->number <= ELF_ARGUMENTS_MAX && !sites->has_frame);
        check_places(&sites->key->start);
        check_places(&sites->key->stop);
}

static void take_resolved(Packet *answer) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *sentence = NULL;
        const BindingSites *sites;
        int r;

        fuzz_assert(binding_new("fuzz", &binding) == 0);
        r = answer_take_resolved(answer, open("/dev/null", O_RDONLY | O_CLOEXEC), binding, &file,
                                 &sentence);
        fuzz_assert(is_text(sentence) && (r < 0) == !file && r <= 0);
        if (r < 0)
                return;
        sites = &binding->resolved.sites;
        fuzz_assert(text_is_printable(binding->resolved.path));
        fuzz_assert(is_text(binding->resolved.build_id) && is_text(binding->resolved.start_code));
        fuzz_assert(is_text(sites->exits.successor) && is_text(sites->exits.several));
        fuzz_assert(sites->exits.n_returns + sites->exits.n_switches <= sites->exits.n);
        check_site(&sites->start);
        check_site(&sites->stop);
        check_key(sites);
}

static void take_others(Packet *answer, uint8_t kind) {
        _cleanup_(file_look_done) FileLook look = {};
        _cleanup_(binding_freep) Binding *binding = NULL;
        FileUsers users;
        FileStamp stamp;
        bool is_program;
        dev_t device;
        ino_t inode;

        fuzz_assert(binding_new("fuzz", &binding) == 0);
        if (kind == 1)
                fuzz_assert(answer_take_look(answer, &look) <= 0 && is_text(look.running));
        else if (kind == 2)
                (void) answer_take_current(answer, binding, &stamp);
        else if (kind == 3)
                fuzz_assert(answer_take_count(answer, &users) <= 0);
        else
                fuzz_assert(answer_take_identity(answer, &device, &inode, &is_program) <= 0);
}

static void take_wired(Packet *packet, uint8_t kind) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        Statistics statistics;
        Histogram lengths;
        Report report;
        Stack stack;

        if (kind == 6 && wire_take_binding(packet, &binding) == 0)
                fuzz_assert(binding_full_name_is_valid(binding->name) && is_text(binding->unit) &&
                            is_text(binding->start) && is_text(binding->lent.file));
        if (kind == 7)
                fuzz_assert(wire_take_books(packet, &statistics, &lengths) <= 0);
        if (kind == 8 && wire_take_report(packet, &report, &stack) == 0)
                fuzz_assert(report.budget < TLOB_N_BUDGETS && report.end < TLOB_N_ENDS &&
                            strlen(report.comm) <= TLOB_COMM_LEN);
}

static void take_line(const uint8_t *data, size_t size) {
        _cleanup_free_ char *line = strndup((const char *) data, size);
        FileMapping mapping;

        fuzz_assert(line);
        (void) file_parse_mapping(line, &mapping);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static Packet answer;
        uint8_t kind;

        if (size == 0)
                return 0;
        kind = *data++ % 9;
        size--;
        if (kind == 5 || size > PACKET_SIZE_MAX) {
                take_line(data, size);
                return 0;
        }
        packet_init(&answer);
        memcpy(answer.data, data, size);
        answer.size = size;
        if (kind == 0)
                take_resolved(&answer);
        else if (kind < 6)
                take_others(&answer, kind);
        else
                take_wired(&answer, kind);
        return 0;
}
