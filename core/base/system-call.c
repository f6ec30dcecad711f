/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The names are libseccomp's, which knows those of all architectures: one that only others have is
 * told from one that nobody has. A library that is older than the kernel does not know the newest.
 *
 * Refused are calls that do not come back to where they were made: what is measured is the time
 * from one to the other. fork(), vfork() and clone() do come back in the caller; that the child
 * begins there too is no end of a call.
 */

#include "base/system-call.h"

#include <errno.h>
#include <seccomp.h>

#include "base/near-name.h"
#include "base/sentence.h"

#define NUMBERS_MAX 1024 /* none is higher */

static const struct {
        const char *name;
        const char *why;
} refused[] = {
        { "execve", "does not return when it succeeds: another program begins in its place" },
        { "execveat", "does not return when it succeeds: another program begins in its place" },
        { "exit", "never returns: it ends the thread" },
        { "exit_group", "never returns: it ends the process" },
        { "rt_sigreturn",
          "does not return to its caller: it goes on where a signal has interrupted the program" },
        { "sigreturn",
          "does not return to its caller: it goes on where a signal has interrupted the program" },
};

const char *system_call_of_place(const char *place) {
        size_t n = strlen(SYSTEM_CALL_PLACE);

        return strncmp(place, SYSTEM_CALL_PLACE, n) == 0 ? place + n : NULL;
}

static int refuse(const char *name, char **ret_why) {
        for (size_t i = 0; i < ELEMENTSOF(refused); i++)
                if (streq(refused[i].name, name))
                        return sentence_error(-EOPNOTSUPP, ret_why, "%s", refused[i].why);
        return 0;
}

/* All names there are here; those that are not in use are NULL. */
static void offer_names(char *names[static NUMBERS_MAX], NearNames *near) {
        for (int i = 0; i < NUMBERS_MAX; i++) {
                names[i] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
                if (names[i])
                        near_names_offer(near, names[i]);
        }
}

static int complain_unknown(const char *name, char **ret_why) {
        _cleanup_free_ char *list = NULL;
        char *names[NUMBERS_MAX];
        NearNames near;

        near_names_init(&near, name, strlen(name));
        offer_names(names, &near);
        list = near_names_list(&near, NULL, NULL);
        for (size_t i = 0; i < NUMBERS_MAX; i++)
                free(names[i]);
        if (!list)
                return -ENOMEM;
        return sentence_error(-ENOENT, ret_why, "is not the name of a system call%s%s",
                              *list != '\0' ? "; near names: " : "", list);
}

int system_call_find(const char *name, uint32_t *ret_number, char **ret_why) {
        int number, r;

        r = refuse(name, ret_why);
        if (r < 0)
                return r;
        number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_NATIVE, name);
        if (number == __NR_SCMP_ERROR)
                return complain_unknown(name, ret_why);
        /* Libseccomp has numbers of its own for those that only others have. */
        if (number < 0)
                return sentence_error(-EOPNOTSUPP, ret_why,
                                      "is not a system call of this machine's architecture");
        *ret_number = (uint32_t) number;
        return 0;
}

int system_call_find_number(const char *name, uint32_t *ret_number) {
        int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_NATIVE, name);

        if (number < 0)
                return -ENOENT;
        *ret_number = (uint32_t) number;
        return 0;
}

char *system_call_get_name(uint32_t number) {
        return number < NUMBERS_MAX
                       ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int) number)
                       : NULL;
}

#if defined(__x86_64__)

static const struct {
        const char *name, *own;
} renamed[] = {
        { "_llseek", "lseek" },        { "_newselect", "select" }, { "fadvise64_64", "fadvise64" },
        { "fstatat64", "newfstatat" }, { "mmap2", "mmap" },        { "ugetrlimit", "getrlimit" },
};

/* Wider than what 32-bit programs once had, as those of 64 bits have always been. */
static const char *const widened[] = { "_time64", "64", "32" };

static int find_widened(const char *name, uint32_t *ret_number) {
        for (size_t i = 0; i < ELEMENTSOF(widened); i++) {
                size_t n = strlen(name), n_end = strlen(widened[i]);
                _cleanup_free_ char *own = NULL;

                if (n <= n_end || !streq(name + n - n_end, widened[i]))
                        continue;
                own = strndup(name, n - n_end);
                if (!own)
                        return -ENOMEM;
                return system_call_find_number(own, ret_number);
        }
        return -ENOENT;
}

int system_call_of_32_bits(uint32_t number_32, uint32_t *ret_number) {
        _cleanup_free_ char *name = NULL;

        name = number_32 < NUMBERS_MAX
                       ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, (int) number_32)
                       : NULL;
        if (!name)
                return -ENOENT;
        if (system_call_find_number(name, ret_number) == 0)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(renamed); i++)
                if (streq(renamed[i].name, name))
                        return system_call_find_number(renamed[i].own, ret_number);
        return find_widened(name, ret_number);
}

#else

int system_call_of_32_bits(uint32_t number_32, uint32_t *ret_number) {
        return -ENOENT;
}

#endif
