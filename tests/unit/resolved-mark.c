/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "resolved-mark.h"

#include "binding/cost.h"
#include "binding/keys.h"
#include "binding/sites.h"
#include "test.h"

void mark_resolve(const char *path, const char *mark, Binding **ret) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *sentence = NULL;

        assert_ok(binding_new("x", &binding));
        assert_ok(binding_set_key(binding, "Executable", path, NULL));
        assert_ok(binding_set_key(binding, "Mark", mark, NULL));
        assert_ok(binding_set_key(binding, "BudgetSec", "1s", NULL));
        assert_ok(elf_file_open(path, &elf, NULL));
        if (binding_resolve_sites(binding, elf, &binding->resolved.sites, &sentence) < 0)
                fail_msg("%s: %s", path, sentence);
        binding_read_probes(binding, elf_file_fd(elf));
        *ret = TAKE_PTR(binding);
}
