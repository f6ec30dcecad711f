/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The keys of a binding that say what is measured: a file, and places in it, or a system call. */

#include <ctype.h>

#include "base/mangled-name.h"
#include "base/sentence.h"
#include "base/system-call.h"
#include "base/trace-event.h"
#include "binding/call.h"
#include "binding/event.h"
#include "binding/internal.h"
#include "binding/window-key.h"
#include "elf/mark.h"

/* Takes a component off a path; what leads nowhere else is skipped. */
static size_t next_component(const char **path, const char **ret) {
        size_t n;

        do {
                *path += strspn(*path, "/");
                n = strcspn(*path, "/");
                *ret = *path;
                *path += n;
        } while (n == 1 && **ret == '.');
        return n;
}

/* Paths that mean whoever opens them: here, a process of tlobd. */
static bool is_own_to_each(const char *path) {
        static const char *const places[][2] = {
                { "proc", "self" }, { "proc", "thread-self" }, { "dev", "fd" },
                { "dev", "stdin" }, { "dev", "stdout" },       { "dev", "stderr" },
        };
        const char *parts[2];
        size_t lengths[2];

        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                lengths[i] = next_component(&path, &parts[i]);
        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (strlen(places[i][0]) == lengths[0] && strlen(places[i][1]) == lengths[1] &&
                    strncmp(places[i][0], parts[0], lengths[0]) == 0 &&
                    strncmp(places[i][1], parts[1], lengths[1]) == 0)
                        return true;
        return false;
}

int key_set_executable(Binding *binding, const BindingKey *key, const char *value,
                       char **ret_error) {
        if (value[0] != '/' && (strchr(value, '/') || value[0] == '.'))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is neither an absolute path nor the name of a library",
                                      key->name, value);
        if (value[0] == '/' && is_own_to_each(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s names a different file in each process that opens "
                                      "it, tlobd included: write the path of the file itself",
                                      key->name, value);
        return key_set_text(binding, key, value, ret_error);
}

static int check_site(const BindingKey *key, const char *value, char **ret_error) {
        if (strstr(value, " #") || strstr(value, " ;"))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a place in a program: a comment needs a line "
                                      "of its own",
                                      key->name, value);
        if (strpbrk(value, name_is_of_source(value) ? "\t" : " \t"))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a place in a program: write a symbol, "
                                      "symbol+0x1c, or an offset such as 0x12a0",
                                      key->name, value);
        return key_check_text(key, value, ret_error);
}

int key_set_start(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        const char *call = system_call_of_place(value);
        int r;

        if (stop_is_return(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not possible: only Stop= can be the return",
                                      key->name, value);
        r = check_site(key, value, ret_error);
        if (r >= 0 && call)
                r = place_check_call(key->name, value, call, ret_error);
        if (r >= 0)
                r = place_check_event(key->name, value, ret_error);
        if (r < 0)
                return r;
        return free_and_strdup(&binding->start, *value != '\0' ? value : NULL);
}

int key_set_stop(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        int r;

        if (system_call_of_place(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not possible: only Start= can be a system call",
                                      key->name, value);

        r = check_site(key, value, ret_error);
        if (r >= 0)
                r = place_check_event(key->name, value, ret_error);
        if (r < 0)
                return r;
        return free_and_strdup(&binding->stop, *value != '\0' ? value : NULL);
}

/* From start to return: what such a key is short for. */
static int set_whole(Binding *binding, const BindingKey *key, const char *start, char **ret_error) {
        _cleanup_free_ char *stop = NULL;
        int r;

        r = free_and_strdup(&stop, *start != '\0' ? "return" : NULL);
        if (r < 0)
                return r;
        r = key_set_start(binding, key, start, ret_error);
        if (r < 0)
                return r;
        free(binding->stop);
        binding->stop = TAKE_PTR(stop);
        return 0;
}

int key_set_function(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        const char *call = system_call_of_place(value);

        if (call)
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a function: write Syscall=%s", key->name, value,
                                      call);
        if (strncmp(value, USDT_PLACE, strlen(USDT_PLACE)) == 0 || trace_event_of_place(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a function: write it as Start=, and where the "
                                      "window ends as Stop=",
                                      key->name, value);
        return set_whole(binding, key, value, ret_error);
}

int key_set_system_call(Binding *binding, const BindingKey *key, const char *value,
                        char **ret_error) {
        char start[BINDING_VALUE_MAX + 16] = "";
        int r;

        if (*value == '\0')
                return set_whole(binding, key, value, ret_error);
        r = place_check_call(key->name, value, value, ret_error);
        if (r < 0)
                return r;
        (void) snprintf(start, sizeof(start), SYSTEM_CALL_PLACE "%s", value);
        return set_whole(binding, key, start, ret_error);
}

int key_set_mark(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        _cleanup_free_ char *start = NULL, *stop = NULL;

        if (*value != '\0' && !mark_name_is_valid(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not the name of a mark: write the NAME that the "
                                      "program gives in TLOB_MARK(NAME)",
                                      key->name, value);
        if (*value != '\0') {
                start = mark_make_place(value, MARK_BEGIN);
                stop = mark_make_place(value, MARK_END);
                if (!start || !stop)
                        return -ENOMEM;
        }
        free(binding->start);
        binding->start = TAKE_PTR(start);
        free(binding->stop);
        binding->stop = TAKE_PTR(stop);
        return 0;
}

int key_set_window_key(Binding *binding, const BindingKey *key, const char *value,
                       char **ret_error) {
        if (window_key_parse(value, &binding->key) < 0)
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not an argument: write arg1 to arg%i, with a type "
                                      "such as :u32 behind it if it is a short integer",
                                      key->name, value, ELF_ARGUMENTS_MAX);
        return 0;
}

#define BUILD_ID_LENGTH_MIN 8
#define BUILD_ID_LENGTH_MAX 128

int key_set_build_id(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        size_t n = strlen(value);
        int r;

        if (n > 0 && (n < BUILD_ID_LENGTH_MIN || n > BUILD_ID_LENGTH_MAX || n % 2 != 0 ||
                      strspn(value, "0123456789abcdefABCDEF") != n))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a build-id: write all its hexadecimal digits, "
                                      "as 'tlobctl verify' and 'file' show them",
                                      key->name, value);
        r = free_and_strdup(&binding->build_id, n > 0 ? value : NULL);
        for (char *p = binding->build_id; r >= 0 && p && *p != '\0'; p++)
                *p = (char) tolower((unsigned char) *p);
        return r;
}
