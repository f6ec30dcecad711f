/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From v5 on, a thread belongs to the binding that it runs first, as long as it lives: starts of
 * other bindings on it are refused without a word, also between windows. The version with names has
 * that too, and its events do not tell the binding. So there, one binding gets the threads of a
 * program, and one of a library, which any thread may run, is alone. Bindings of others count:
 * theirs may have been first.
 */

#include "kernel/owner.h"

#include "base/sentence.h"

/* A binding that threads of this one may belong to: its line. NULL: there is none. */
static const char *find_rival(const KernelContext *c, const KernelEntry *entry) {
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used && !c->entries[i].retired && &c->entries[i] != entry &&
                    kernel_file_overlaps(&c->entries[i].file, &entry->file))
                        return c->entries[i].line.text;
        for (size_t i = 0; i < c->foreign.n; i++)
                if (kernel_file_overlaps(&c->foreign_files[i], &entry->file))
                        return c->foreign.items[i].text;
        return NULL;
}

static char *explain(const KernelContext *c, const char *rival) {
        if (kernel_monitor_has_names(&c->monitor))
                return sentence_make("The events of the kernel's monitor name no binding, and "
                                     "this one could not be told apart from '%s'",
                                     rival);
        return sentence_make("In this version of the kernel's monitor a thread belongs to the "
                             "binding that it runs first, and that may be '%s'",
                             rival);
}

int kernel_owner_check(const KernelContext *c, const KernelEntry *entry, char **ret_reason) {
        const char *rival;

        if (!kernel_monitor_owns_threads(&c->monitor))
                return 0;
        rival = find_rival(c, entry);
        if (!rival)
                return 0;
        *ret_reason = explain(c, rival);
        return *ret_reason ? -EOPNOTSUPP : -ENOMEM;
}

void kernel_owner_look(KernelContext *c) {
        if (!kernel_monitor_owns_threads(&c->monitor))
                return;
        for (size_t i = 0; i < c->n_entries; i++) {
                KernelEntry *entry = &c->entries[i];
                _cleanup_free_ char *why = NULL;
                const char *rival;

                if (!kernel_entry_is_live(entry))
                        continue;
                rival = find_rival(c, entry);
                if (rival && !entry->has_rival)
                        why = explain(c, rival);
                entry->has_rival = rival != NULL;
                if (why)
                        kernel_context_advise(c, (uint32_t) i, why);
        }
}
