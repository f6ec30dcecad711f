/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From what is written as Start= and Stop= to places in a file, and the refusal of those where a
 * probe would harm the program or measure something else:
 *
 * - inside an instruction: the breakpoint is then a part of another instruction, and the program
 *   computes something else;
 * - an instruction that enters the kernel (syscall): it is executed in another place, and the child
 *   that a fork makes there goes on in that place, in memory that it does not have. On Linux 6.18,
 *   children died and handlers of signals returned to wrong registers. Whoever insists gets none
 *   either;
 * - a nop of five bytes inside a function: Linux 6.18 puts a call there, and a call writes below
 *   the stack pointer, where a function that calls nobody may keep what it computes with. At a
 *   function's beginning nothing lies there yet, if it is only called. It is refused on every
 *   kernel, since the next one may do it;
 * - the return of a function whose ways out are not all known. A return probe needs no such
 *   knowledge, but replaces the return address, at which exceptions, panics, pthread_exit() and
 *   coroutines break. Nothing in a file can tell that none of them will pass: libc alone unwinds
 *   for pthread_exit(), libraries are loaded later, and a stack is switched by a few instructions
 *   of assembly. So it is set on request only;
 * - all but the functions of Go in a program of Go: a goroutine goes on in another thread than the
 *   one that it began in, and windows belong to threads. A function is left where that is seen, too
 *   (elf/go-function.c); between any two places it would not be.
 *
 * A USDT probe is at a nop by its author's will, so a nop is believed where nothing is known of the
 * function; a note that lies harms its own program only.
 */

#include "binding/sites.h"

#include <inttypes.h>

#include "base/mangled-name.h"
#include "base/sentence.h"
#include "binding/window-key.h"
#include "elf/dynamic.h"
#include "elf/function-exits.h"
#include "elf/probe-kind.h"

#define READABLE_SIZE (BINDING_VALUE_MAX + 1) /* of a name that can be written */

#define ASK_FOR_PROBE                                                                              \
        "Write Stop= with a place in the function, or Stop=return-probe, which breaks programs "   \
        "that unwind through the function"

#define ASK_FOR_PLACE                                                                              \
        "If you want to know when its work is done, write Stop= with a place in the function"

#define ASK_FOR_CALL "Measure another function, or system calls: Syscall="

static int check_language(const Binding *binding, const ElfFile *elf, char **ret_error) {
        if (!elf_file_is_go(elf))
                return 0;
        if (streq(binding->stop, "return-probe"))
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "%s is Go code, which a return probe would end when a stack "
                                      "is moved: write Function=",
                                      elf_file_path(elf));
        if (binding_stop_is_return(binding))
                return 0;
        return sentence_error(
                -EOPNOTSUPP, ret_error,
                "%s is Go code, whose goroutines move from thread to thread: a window between two "
                "places would end in another thread than it began in. Write Function=, or Syscall=",
                elf_file_path(elf));
}

static bool is_name_alone(const char *text) {
        return (text[0] < '0' || text[0] > '9') && !strchr(text, '+');
}

/* Nothing tells where instructions begin around that place. */
static int check_unknown(const Binding *binding, const ElfFile *elf, const char *key,
                         const char *text, const char *why, char **ret_error) {
        if (binding->unsafe)
                return 0;
        return sentence_error(
                -EOPNOTSUPP, ret_error,
                "tlobd cannot tell whether an instruction begins at %s=%s in %s, because %s. If "
                "you know that one does, write Unsafe=yes",
                key, text, elf_file_path(elf), why);
}

static int check_harm(const ElfFile *elf, const char *key, const char *text, uint64_t offset,
                      char **ret_error) {
        static const char *const what[PROBE_N_HARMS] = {
                [PROBE_ON_SYSTEM_CALL] =
                        "enters the kernel: a probe there breaks programs that fork or handle "
                        "signals. Name one beside it, or write Syscall=",
                [PROBE_ON_FLAGS] = "saves the flags: a probe there kills programs that restore "
                                   "them. Name one beside it",
                [PROBE_ON_REPEATED] = "repeats itself: a probe there is hit each time, which can "
                                      "take seconds. Name one beside it",
                [PROBE_ON_MISTAKEN] = "the kernel takes for another one (a vector instruction, or "
                                      "xchg): a probe there changes what the program does. Name "
                                      "one beside it",
        };
        ProbeHarm harm = probe_harm_at(elf_file_fd(elf), offset);

        if (harm == PROBE_HARMLESS)
                return 0;
        return sentence_error(-EOPNOTSUPP, ret_error, "%s=%s in %s is an instruction that %s", key,
                              text, elf_file_path(elf), what[harm]);
}

#define NOP5                                                                                       \
        "a 5-byte nop: Linux 6.18 replaces it with a call into memory that children of the "       \
        "program do not have, and that overwrites what is below the stack pointer"

static int check_nop(const ElfFile *elf, const char *key, const char *text, uint64_t offset,
                     char **ret_error) {
        if (!probe_is_on_nop5(elf_file_fd(elf), offset))
                return 0;
        return sentence_error(-EOPNOTSUPP, ret_error,
                              "%s=%s in %s is " NOP5
                              ". Name the next instruction, at file offset 0x%" PRIx64,
                              key, text, elf_file_path(elf), offset + NOP5_SIZE);
}

static int check_refused(const ElfFile *elf, const char *key, const char *text, uint64_t offset,
                         char **ret_error) {
        if (!probe_is_refused(elf_file_fd(elf), offset))
                return 0;
        if (strncmp(text, USDT_PLACE, strlen(USDT_PLACE)) == 0)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "%s=%s in %s is at an instruction with a prefix that this "
                                      "kernel puts no probe on. On a nop of 10 bytes, Linux 7.2 "
                                      "does",
                                      key, text, elf_file_path(elf));
        return sentence_error(-EOPNOTSUPP, ret_error,
                              "%s=%s in %s is " PROBE_REFUSED
                              " that this kernel puts no probe on: name one beside it",
                              key, text, elf_file_path(elf));
}

static int check_place(const Binding *binding, const ElfFile *elf, const char *key,
                       const char *text, const ElfSite *site, char **ret_error) {
        _cleanup_free_ char *sentence = NULL;
        const char *why = NULL;
        uint64_t begin = 0;
        int r;

        r = check_harm(elf, key, text, site->offset, ret_error);
        if (r >= 0)
                r = check_nop(elf, key, text, site->offset, ret_error);
        if (r < 0)
                return r;
        r = function_check_boundary(elf, site->offset, &begin, &why);
        if (r == -ENOMEM)
                return r;
        if (r == 0)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "%s=%s in %s is inside the instruction at 0x%" PRIx64
                                      ": a probe there would change what the program does",
                                      key, text, elf_file_path(elf), begin);
        if (r > 0)
                return check_refused(elf, key, text, site->offset, ret_error);
        /* A symbol alone says that something begins there. */
        if (r == -ESRCH && is_name_alone(text))
                return 0;
        if (r == -ESRCH)
                return check_unknown(binding, elf, key, text,
                                     "it is not known which function that is in", ret_error);
        if (asprintf(&sentence, "its function %s", why) < 0) {
                sentence = NULL;
                return -ENOMEM;
        }
        return check_unknown(binding, elf, key, text, sentence, ret_error);
}

static int check_usdt_place(const Binding *binding, const ElfFile *elf, const char *key,
                            const char *text, uint64_t offset, char **ret_error) {
        const char *why = NULL;
        uint64_t begin;
        int r;

        r = check_harm(elf, key, text, offset, ret_error);
        if (r < 0)
                return r;
        if (probe_is_on_nop5(elf_file_fd(elf), offset))
                return sentence_error(-EOPNOTSUPP, ret_error, "%s=%s in %s is " NOP5, key, text,
                                      elf_file_path(elf));
        r = function_check_boundary(elf, offset, &begin, &why);
        if (r == -ENOMEM)
                return r;
        if (r > 0)
                return check_refused(elf, key, text, offset, ret_error);
        if (r == 0)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "The note on %s=%s in %s is wrong: it names a place inside "
                                      "the instruction at 0x%" PRIx64,
                                      key, text, elf_file_path(elf), begin);
        if (probe_is_on_nop(elf_file_fd(elf), offset))
                return check_refused(elf, key, text, offset, ret_error);
        return check_unknown(binding, elf, key, text, "it is not a nop", ret_error);
}

/* Each place of the site. */
static int check_site(const Binding *binding, const ElfFile *elf, const char *key, const char *text,
                      const ElfSite *site, char **ret_error) {
        int r = 0;

        if (site->n_places == 0)
                return check_place(binding, elf, key, text, site, ret_error);
        for (size_t i = 0; i < site->n_places && r >= 0; i++)
                r = check_usdt_place(binding, elf, key, text, site->places[i].offset, ret_error);
        return r;
}

static int resolve_place(const Binding *binding, ElfFile *elf, BindingSites *sites,
                         char **ret_error) {
        uint64_t start, stop;
        int r;

        r = elf_file_resolve(elf, binding->stop, &sites->stop, ret_error);
        if (r < 0)
                return r;
        if (elf_site_has(&sites->start, sites->stop.offset) ||
            elf_site_has(&sites->stop, sites->start.offset))
                return sentence_error(-EINVAL, ret_error,
                                      "Start=%s and Stop=%s are the same place in %s: a "
                                      "window needs two",
                                      binding->start, binding->stop, elf_file_path(elf));
        r = check_site(binding, elf, "Stop", binding->stop, &sites->stop, ret_error);
        if (r < 0)
                return r;
        sites->how = TLOB_STOP_PLACE;
        sites->has_frame = sites->start.n_places == 0 && sites->stop.n_places == 0 &&
                           function_is_entry(elf, sites->start.offset, &start) &&
                           function_find_entry(elf, sites->stop.offset, &stop) >= 0 &&
                           start == stop;
        return 0;
}

/* A name as 'tlobctl functions' shows it, and as Function= takes it. It may be in text. */
static const char *readable_name(const char *name, char text[static READABLE_SIZE]) {
        bool is_known = mangled_name_decode(name, true, text, READABLE_SIZE) &&
                        strlen(text) < READABLE_SIZE - 1 && text_is_printable(text);

        return is_known ? text : name;
}

/* There is no other place in it that could be named. */
static int refuse_jump(const char *function, const ElfFile *elf, const FunctionRefusal *refusal,
                       char **ret_error) {
        char text[READABLE_SIZE];
        const char *to;

        if (!refusal->successor)
                return sentence_error(-EOPNOTSUPP, ret_error, "'%s' in %s %s. Name that one",
                                      function, elf_file_path(elf), refusal->reason);
        to = readable_name(refusal->successor, text);
        return sentence_error(-EOPNOTSUPP, ret_error,
                              "'%s' in %s consists only of a jump to '%s', so that a window would "
                              "end where it begins. Name that one: Function=%s",
                              function, elf_file_path(elf), to, to);
}

static int refuse_exits(const char *function, const ElfFile *elf, const FunctionRefusal *refusal,
                        char **ret_error) {
        const char *advice = ASK_FOR_PROBE;

        if (refusal->kind == REFUSED_JUMP)
                return refuse_jump(function, elf, refusal, ret_error);
        if (refusal->kind == REFUSED_NO_EXIT)
                advice = ASK_FOR_PLACE;
        if (refusal->kind == REFUSED_RETURN || elf_file_is_go(elf))
                advice = ASK_FOR_CALL;
        return sentence_error(-EOPNOTSUPP, ret_error, "'%s' in %s %s. %s", function,
                              elf_file_path(elf), refusal->reason, advice);
}

/* The child returns first, and the parent with what it left of the stack. */
static bool returns_twice(const char *function) {
        return streq(function, "vfork") || streq(function, "__vfork");
}

static int resolve_exits(const Binding *binding, const ElfFile *elf, uint64_t entry,
                         BindingSites *sites, char **ret_error) {
        const char *function = sites->start.function ?: binding->start;
        _cleanup_(function_refusal_done) FunctionRefusal refusal = {};
        int r;

        if (returns_twice(function))
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "'%s' in %s returns twice, to the child and to the parent: "
                                      "measure the system call, Syscall=vfork",
                                      function, elf_file_path(elf));
        r = function_judge_exits(elf, entry, &sites->exits, &refusal);
        if (r == -EOPNOTSUPP)
                return refuse_exits(function, elf, &refusal, ret_error);
        if (r < 0)
                return r;
        if (sites->exits.n_switches > 0) {
                sites->start.offset = sites->exits.start;
                sites->has_frame = false;
                sites->how = TLOB_STOP_GO;
                return 0;
        }
        if (elf_file_is_go(elf) && !elf_file_has_go_table(elf))
                return sentence_error(
                        -EOPNOTSUPP, ret_error,
                        "%s is Go code whose table of functions tlobd does not know: "
                        "it is of another version, or position-independent and linked "
                        "by a linker of C. Measure system calls: Syscall=",
                        elf_file_path(elf));
        if (elf_file_is_go(elf))
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "'%s' in %s is not a function of Go, and may run on its "
                                      "stacks: only C code in a library can be measured",
                                      function, elf_file_path(elf));
        if (sites->start.offset > sites->exits.start)
                sites->start.offset = sites->exits.start;
        sites->how = TLOB_STOP_EXITS;
        return 0;
}

static int resolve_return(const Binding *binding, const ElfFile *elf, BindingSites *sites,
                          char **ret_error) {
        bool probe = streq(binding->stop, "return-probe");
        uint64_t entry = sites->start.offset;

        if (sites->start.n_places > 0)
                return sentence_error(-EINVAL, ret_error,
                                      "Stop=%s is not possible with Start=%s: name the probe or "
                                      "the place where the window ends",
                                      binding->stop, binding->start);
        sites->has_frame = true;
        sites->how = TLOB_STOP_RETURN_PROBE;
        if (function_is_entry(elf, sites->start.offset, &entry))
                return probe ? 0 : resolve_exits(binding, elf, entry, sites, ret_error);
        if (function_find_entry(elf, sites->start.offset, &entry) >= 0)
                return sentence_error(
                        -EINVAL, ret_error,
                        "Start=%s is not the beginning of '%s' in %s, which Stop=%s requires",
                        binding->start, sites->start.function ?: "its function", elf_file_path(elf),
                        binding->stop);
        if (!probe)
                return resolve_exits(binding, elf, entry, sites, ret_error);
        if (is_name_alone(binding->start))
                return 0;
        return check_unknown(binding, elf, "Start", binding->start,
                             "it is not known which function that is in", ret_error);
}

/* Where the function is entered, and all ways out of it. */
static int check_function(const Binding *binding, const ElfFile *elf, const BindingSites *sites,
                          char **ret_error) {
        uint64_t offset = sites->start.offset;
        bool is_refused = probe_is_refused(elf_file_fd(elf), offset);
        int r;

        r = check_harm(elf, "Start", binding->start, offset, ret_error);
        if (r >= 0)
                r = check_nop(elf, "Start", binding->start, offset, ret_error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < sites->exits.n && !is_refused; i++) {
                offset = sites->exits.offsets[i];
                is_refused = probe_is_refused(elf_file_fd(elf), offset);
        }
        if (!is_refused)
                return 0;
        return sentence_error(-EOPNOTSUPP, ret_error,
                              "'%s' in %s is entered or left at " PROBE_REFUSED
                              ", at file offset 0x%" PRIx64
                              ", that this kernel puts no probe on. " ASK_FOR_CALL,
                              sites->start.function ?: binding->start, elf_file_path(elf), offset);
}

/* Under a probe, the kernel executes the instruction that the file has. */
static int check_code(const ElfFile *elf, char **ret_error) {
        if (!elf_file_has_text_relocations(elf))
                return 0;
        return sentence_error(-EOPNOTSUPP, ret_error,
                              "The code of %s is changed when it is loaded (text relocations): a "
                              "probe would bring back what the file has. Link it without -z notext",
                              elf_file_path(elf));
}

int binding_resolve_sites(const Binding *binding, ElfFile *elf, BindingSites *ret,
                          char **ret_error) {
        _cleanup_(binding_sites_done) BindingSites sites = {};
        int r;

        r = check_code(elf, ret_error);
        if (r >= 0)
                r = check_language(binding, elf, ret_error);
        if (r < 0)
                return r;
        r = elf_file_resolve(elf, binding->start, &sites.start, ret_error);
        if (r < 0)
                return r;
        if (binding_stop_is_return(binding)) {
                r = resolve_return(binding, elf, &sites, ret_error);
                if (r >= 0)
                        r = check_function(binding, elf, &sites, ret_error);
        } else {
                r = check_site(binding, elf, "Start", binding->start, &sites.start, ret_error);
                if (r >= 0)
                        r = resolve_place(binding, elf, &sites, ret_error);
                if (r >= 0)
                        r = window_key_resolve(binding, elf, &sites, ret_error);
        }
        if (r < 0)
                return r;
        *ret = sites;
        sites = (BindingSites) {};
        return 0;
}

static const char *plural(size_t n) {
        return n == 1 ? "" : "s";
}

#define GOROUTINES                                                                                 \
        ". Calls in which the goroutine waits, or is stopped for another one, are only counted "   \
        "(switched); each such switch in the program costs two probes"

static int describe_exits(const FunctionExits *exits, char **ret) {
        _cleanup_free_ char *returns = NULL, *jumps = NULL;
        size_t n_ways = function_exits_n_ways(exits), n_jumps = function_exits_n_jumps(exits);
        char text[READABLE_SIZE];
        const char *to = exits->successor ? readable_name(exits->successor, text) : NULL;

        if (exits->n_returns > 0)
                returns =
                        sentence_make("%zu return%s%s", exits->n_returns, plural(exits->n_returns),
                                      exits->depth == 0      ? ""
                                      : exits->n_returns > 1 ? ", at the stack checks before them"
                                                             : ", at the stack check before it");
        if (n_jumps > 0)
                jumps = sentence_make("%zu tail call%s%s%s%s, whose time is not measured", n_jumps,
                                      plural(n_jumps), to ? " (to " : "", to ?: "", to ? ")" : "");
        if ((exits->n_returns > 0 && !returns) || (n_jumps > 0 && !jumps))
                return -ENOMEM;
        *ret = sentence_make("%zu way%s out: %s%s%s%s", n_ways, plural(n_ways), returns ?: "",
                             returns && jumps ? ", " : "", jumps ?: "",
                             exits->n_switches > 0 ? GOROUTINES : "");
        return *ret ? 0 : -ENOMEM;
}

int binding_describe_start(const Binding *binding, char **ret) {
        const char *kind = probe_kind_to_string(binding->resolved.start_kind);

        *ret = NULL;
        if (!binding->resolved.start_code)
                return 0;
        *ret = sentence_make(*kind != '\0' ? "%s (%s)" : "%s", binding->resolved.start_code, kind);
        return *ret ? 0 : -ENOMEM;
}

int binding_describe_stop(const Binding *binding, char **ret) {
        *ret = NULL;
        switch (binding->resolved.sites.how) {
        case TLOB_STOP_EXITS:
        case TLOB_STOP_GO:
                return describe_exits(&binding->resolved.sites.exits, ret);
        case TLOB_STOP_RETURN_PROBE:
                *ret = strdup(
                        "A return probe breaks programs that unwind through this function: by "
                        "exceptions, panics, pthread_exit(), coroutines, handlers on another "
                        "stack");
                return *ret ? 0 : -ENOMEM;
        case TLOB_STOP_PLACE:
        case TLOB_STOP_CALL:
                break;
        }
        return 0;
}

int binding_describe_semaphores(const Binding *binding, char **ret) {
        const BindingResolved *resolved = &binding->resolved;
        bool is_start = resolved->sites.start.is_miscounted;

        *ret = NULL;
        if (!is_start && !resolved->sites.stop.is_miscounted)
                return 0;
        *ret = sentence_make(
                "Processes that start while this binding is set may be missed: the semaphore of %s "
                "is in a page of %s that two segments share, and the kernel counts in the wrong "
                "one. Link it with -Wl,-z,separate-loadable-segments, or with another linker than "
                "lld",
                is_start ? binding->start : binding->stop, resolved->path);
        return *ret ? 0 : -ENOMEM;
}
