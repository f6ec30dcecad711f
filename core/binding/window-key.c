/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binding/window-key.h"

#include "base/sentence.h"
#include "elf/function-exits.h"
#include "elf/mark.h"
#include "elf/usdt.h"

int window_key_parse(const char *text, unsigned *ret) {
        if (*text == '\0') {
                *ret = 0;
                return 0;
        }
        for (unsigned number = 1; number <= ELF_ARGUMENTS_MAX; number++) {
                char name[16];

                (void) snprintf(name, sizeof(name), WINDOW_KEY "%u", number);
                if (streq(name, text)) {
                        *ret = number;
                        return 0;
                }
        }
        return -EINVAL;
}

unsigned window_key_number(const Binding *binding) {
        const WindowKey *key = binding->resolved.sites.key;

        return key ? key->number : binding->key;
}

static bool is_mark(const char *place) {
        const char *name;
        MarkSide side;

        return mark_parse_place(place, &name, &side) > 0;
}

/* Of a mark, the program says whether it has a key. Returns the number, or a negative errno. */
static int find_number(const Binding *binding, const ElfFile *elf) {
        int r;

        if (binding->key > 0 || !is_mark(binding->start) || !is_mark(binding->stop))
                return (int) binding->key;
        r = elf_file_usdt_has_arguments(elf, binding->start);
        return r != 0 ? r : elf_file_usdt_has_arguments(elf, binding->stop);
}

static int resolve_function(const ElfFile *elf, const char *key, const char *place, unsigned number,
                            const ElfSite *site, ElfArgumentPlaces *ret, char **ret_error) {
        uint64_t entry;

        if (!function_is_entry(elf, site->offset, &entry))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s in %s is not the beginning of a function: only there, "
                                      "and at USDT probes, arguments are known",
                                      key, place, elf_file_path(elf));
        if (elf_argument_of_function(number, &ret->places[0].argument) < 0)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "Key=arg%u is not possible with %s=%s: only the first %i "
                                      "arguments of a function are in registers",
                                      number, key, place, ELF_FUNCTION_ARGUMENTS_MAX);
        ret->places[0].offset = site->offset;
        ret->n = 1;
        return 0;
}

static int resolve_side(const ElfFile *elf, const char *key, const char *place, unsigned number,
                        const ElfSite *site, ElfArgumentPlaces *ret, char **ret_error) {
        return site->n_places > 0
                       ? elf_file_read_usdt_argument(elf, place, number, site, ret, ret_error)
                       : resolve_function(elf, key, place, number, site, ret, ret_error);
}

int window_key_resolve(const Binding *binding, const ElfFile *elf, BindingSites *sites,
                       char **ret_error) {
        int number = find_number(binding, elf), r;
        _cleanup_free_ WindowKey *key = NULL;

        if (number <= 0)
                return number;
        if (binding_has_state_budget(binding))
                return sentence_error(-EINVAL, ret_error,
                                      "The mark in %s has a key, so no budget of a state is "
                                      "possible: of a window that any thread may end only the "
                                      "length is known. Write BudgetSec= only",
                                      elf_file_path(elf));
        key = calloc(1, sizeof(*key));
        if (!key)
                return -ENOMEM;
        key->number = (unsigned) number;
        r = resolve_side(elf, "Start", binding->start, key->number, &sites->start, &key->start,
                         ret_error);
        if (r >= 0)
                r = resolve_side(elf, "Stop", binding->stop, key->number, &sites->stop, &key->stop,
                                 ret_error);
        if (r < 0)
                return r;
        sites->key = TAKE_PTR(key);
        sites->has_frame = false;
        return 0;
}
