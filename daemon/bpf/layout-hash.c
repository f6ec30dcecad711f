/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether programs can use the maps of others is seen by the types of what is in them: as the
 * compiler has noted them (BTF), written down as C. So a change of code that leaves them alone
 * costs nobody his books, and one that does not is found without anybody having to think of it.
 */

#include "bpf/layout-hash.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>

#include "bpf/kept.h"
#include "bpf/skeleton.h"

typedef struct Layout {
        const struct btf *btf;
        struct btf_dump *dump;
        FILE *text;
        bool is_cut; /* for want of memory */
} Layout;

static void write_text(void *userdata, const char *format, va_list ap) _printf_(2, 0);

static void write_text(void *userdata, const char *format, va_list ap) {
        const Layout *layout = userdata;

        (void) vfprintf(layout->text, format, ap);
}

/* With all types that it is made of, each of them once. libbpf cannot go on after an error. */
static void write_type(Layout *layout, uint32_t id) {
        (void) fputs("\n", layout->text);
        if (!layout->is_cut)
                layout->is_cut = btf_dump__dump_type(layout->dump, id) < 0;
}

/* Global variables. */
static void write_section(Layout *layout, const char *name) {
        int id = btf__find_by_name_kind(layout->btf, name, BTF_KIND_DATASEC);
        const struct btf_var_secinfo *variable;
        const struct btf_type *section;

        if (id < 0)
                return;
        section = btf__type_by_id(layout->btf, (uint32_t) id);
        variable = btf_var_secinfos(section);
        for (size_t i = 0; i < btf_vlen(section); i++, variable++) {
                const struct btf_type *type = btf__type_by_id(layout->btf, variable->type);

                (void) fprintf(layout->text, "%s %u+%u",
                               btf__name_by_offset(layout->btf, type->name_off), variable->offset,
                               variable->size);
                write_type(layout, type->type);
        }
}

static void write_map(Layout *layout, const struct bpf_map *map) {
        (void) fprintf(layout->text, "%s %i %u %u %u %u", bpf_map__name(map),
                       (int) bpf_map__type(map), bpf_map__map_flags(map), bpf_map__max_entries(map),
                       bpf_map__key_size(map), bpf_map__value_size(map));
        write_type(layout, bpf_map__btf_key_type_id(map));
        write_type(layout, bpf_map__btf_value_type_id(map));
}

/* What goes through the ring buffer, whose map has no types. */
static void write_records(Layout *layout) {
        static const char *const names[] = { "tlob_record", "tlob_stack_record",
                                             "tlob_instance_record", "tlob_process_record" };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                int id = btf__find_by_name_kind(layout->btf, names[i], BTF_KIND_STRUCT);

                if (id > 0)
                        write_type(layout, (uint32_t) id);
        }
}

static void write_all(Layout *layout, const struct tlob_bpf *bpf) {
        const struct bpf_map *map;

        bpf_object__for_each_map(map, bpf->obj) if (!bpf_map__is_internal(map))
                write_map(layout, map);
        write_section(layout, ".bss");
        write_section(layout, ".data");
        write_records(layout);
}

/* What bpf/carried.c reads. */
static void write_books(Layout *layout, const struct tlob_bpf *bpf) {
        write_map(layout, bpf->maps.statistics);
        write_map(layout, bpf->maps.maxima);
        write_map(layout, bpf->maps.histograms);
        (void) fprintf(layout->text, "%i %zu\n", TLOB_HISTOGRAMS_GROUP,
                       sizeof(struct tlob_histogram));
}

/* 0: no memory. */
static uint64_t hash(const struct tlob_bpf *bpf,
                     void (*write)(Layout *layout, const struct tlob_bpf *bpf)) {
        Layout layout = { .btf = bpf_object__btf(bpf->obj) };
        _cleanup_free_ char *text = NULL;
        size_t size;

        layout.text = open_memstream(&text, &size);
        if (!layout.text)
                return 0;
        (void) fprintf(layout.text, "%i\n", TLOB_LAYOUT_VERSION);
        layout.dump = btf_dump__new(layout.btf, write_text, &layout, NULL);
        layout.is_cut = !layout.dump;
        if (layout.dump)
                write(&layout, bpf);
        btf_dump__free(layout.dump);
        layout.is_cut |= ferror(layout.text);
        /* glibc (2.36) reports no error if it cannot trim the text, and leaves none. */
        if (fclose(layout.text) < 0 || layout.is_cut || !text)
                return 0;
        return kept_hash(text, size);
}

LayoutHash bpf_layout_hash(void) {
        static LayoutHash ret;
        struct tlob_bpf *bpf;

        if (ret.all && ret.books)
                return ret;
        bpf = skeleton_open();
        if (!bpf)
                return ret;
        ret.all = hash(bpf, write_all);
        ret.books = hash(bpf, write_books);
        tlob_bpf__destroy(bpf);
        return ret;
}
