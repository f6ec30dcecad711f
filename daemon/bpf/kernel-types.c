/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bpf/kernel-types.h"

#include <bpf/btf.h>

#include "base/cleanup.h"

static bool find_in_type(const struct btf *btf, const struct btf_type *type, const char *name,
                         uint32_t *ret_offset) {
        const struct btf_member *member = btf_members(type);

        for (uint32_t i = 0; i < btf_vlen(type); i++, member++) {
                const char *own = btf__name_by_offset(btf, member->name_off);
                const struct btf_type *inner = btf__type_by_id(btf, member->type);
                uint32_t offset = btf_member_bit_offset(type, i);

                if (streq(own, name)) {
                        *ret_offset = offset;
                        return true;
                }
                if (*own == '\0' && btf_is_composite(inner) &&
                    find_in_type(btf, inner, name, ret_offset)) {
                        *ret_offset += offset;
                        return true;
                }
        }
        return false;
}

bool kernel_types_find_member(const struct btf *btf, const char *structure, const char *member,
                              uint32_t *ret_offset) {
        int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);

        return id > 0 && find_in_type(btf, btf__type_by_id(btf, (uint32_t) id), member, ret_offset);
}

bool kernel_types_have_member(const struct btf *btf, const char *structure, const char *member) {
        uint32_t offset;

        return kernel_types_find_member(btf, structure, member, &offset);
}
