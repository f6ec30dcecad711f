/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binding/window-key.h"

#include "base/sentence.h"
#include "elf/function-exits.h"
#include "elf/mark.h"
#include "elf/usdt.h"

#define ARGUMENT "arg"

static const struct {
        const char *name;
        uint8_t size;
        bool is_signed;
} types[] = {
        { "", 0, false },     { ":u8", 1, false },  { ":u16", 2, false },
        { ":u32", 4, false }, { ":u64", 8, false }, { ":s8", 1, true },
        { ":s16", 2, true },  { ":s32", 4, true },  { ":s64", 8, true },
};

static const char *type_of(const KeyArgument *key) {
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (types[i].size == key->size && types[i].is_signed == key->is_signed)
                        return types[i].name;
        return "";
}

static const char *format(unsigned number, const char *type, char text[static WINDOW_KEY_MAX]) {
        (void) snprintf(text, WINDOW_KEY_MAX, ARGUMENT "%u%s", number, type);
        return text;
}

int window_key_parse(const char *text, KeyArgument *ret) {
        char name[WINDOW_KEY_MAX];

        *ret = (KeyArgument) {};
        if (*text == '\0')
                return 0;
        for (unsigned number = 1; number <= ELF_ARGUMENTS_MAX; number++)
                for (size_t i = 0; i < ELEMENTSOF(types); i++)
                        if (streq(format(number, types[i].name, name), text)) {
                                *ret = (KeyArgument) { number, types[i].size, types[i].is_signed };
                                return 0;
                        }
        return -EINVAL;
}

const char *window_key_format(const Binding *binding, char text[static WINDOW_KEY_MAX]) {
        const WindowKey *found = binding->resolved.sites.key;
        unsigned number = found ? found->number : binding->key.number;

        text[0] = '\0';
        return number > 0 ? format(number, type_of(&binding->key), text) : text;
}

static bool is_mark(const char *place) {
        const char *name;
        MarkSide side;

        return mark_parse_place(place, &name, &side) > 0;
}

/* Of a mark, the program says whether it has a key. Returns the number, or a negative errno. */
static int find_number(const Binding *binding, const ElfFile *elf) {
        int r;

        if (binding->key.number > 0 || !is_mark(binding->start) || !is_mark(binding->stop))
                return (int) binding->key.number;
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

/* Only so much of it counts. No more of memory is read than there is of it. */
static void narrow(ElfArgumentPlaces *places, const KeyArgument *key) {
        for (size_t i = 0; i < places->n && key->size > 0; i++) {
                ElfArgument *argument = &places->places[i].argument;

                if (argument->kind != ELF_ARGUMENT_MEMORY || key->size < argument->size)
                        argument->size = key->size;
                argument->is_signed = key->is_signed;
        }
}

/* A mark that has a key at one of its ends only. */
static int refuse_mark(const Binding *binding, const ElfFile *elf, char **ret_error) {
        const char *name = "";
        size_t n = mark_of_places(binding->start, binding->stop, &name);

        return sentence_error(-EOPNOTSUPP, ret_error,
                              "The mark '%.*s' in %s has a key at some of its places only: the "
                              "program must use tlob_begin_key() and tlob_end_key() at all of them",
                              (int) n, name, elf_file_path(elf));
}

static int resolve_sides(const Binding *binding, const ElfFile *elf, const BindingSites *sites,
                         WindowKey *key, char **ret_error) {
        int r;

        r = resolve_side(elf, "Start", binding->start, key->number, &sites->start, &key->start,
                         ret_error);
        return r < 0 ? r
                     : resolve_side(elf, "Stop", binding->stop, key->number, &sites->stop,
                                    &key->stop, ret_error);
}

int window_key_resolve(const Binding *binding, const ElfFile *elf, BindingSites *sites,
                       char **ret_error) {
        int number = find_number(binding, elf), r;
        _cleanup_free_ char *sentence = NULL;
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
        r = resolve_sides(binding, elf, sites, key, &sentence);
        if (r == -ESRCH && binding->key.number == 0)
                return refuse_mark(binding, elf, ret_error);
        if (r < 0)
                return sentence ? sentence_error(r, ret_error, "%s", sentence) : r;
        narrow(&key->start, &binding->key);
        narrow(&key->stop, &binding->key);
        sites->key = TAKE_PTR(key);
        sites->has_frame = false;
        return 0;
}
