/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From what is configured to a file and the places in it: the executable is opened, read, and not
 * kept. It can be a file that does not answer, so only processes that may hang do this for the
 * daemon (file/reader.c).
 */

#include "binding/resolve.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/sentence.h"
#include "binding/call.h"
#include "binding/cost.h"
#include "binding/event.h"
#include "binding/executable.h"
#include "binding/sites.h"

/* Somebody waits, on a machine that may be busy. */
#define COUNTING_NS UINT64_C(2000000000)

/* Everybody is told where it is. */
static int check_path(const ElfFile *elf, const char *inner_path, char **ret_error) {
        if (text_is_printable(elf_file_path(elf)) && text_is_printable(inner_path))
                return 0;
        return sentence_error(-EINVAL, ret_error,
                              "The program or library is at a path with bytes that are not text, "
                              "as its unit sees it: move or rename it");
}

/* It waits for that build: it may come back. */
static int check_build(const Binding *binding, const ElfFile *elf, char **ret_error) {
        const char *build_id = elf_file_build_id(elf);

        if (!binding->build_id || streq_empty(binding->build_id, build_id))
                return 0;
        if (!build_id)
                return sentence_error(-EAGAIN, ret_error, "%s has no build-id, but BuildID=%s",
                                      elf_file_path(elf), binding->build_id);
        return sentence_error(-EAGAIN, ret_error, "%s is build %s, not BuildID=%s",
                              elf_file_path(elf), build_id, binding->build_id);
}

static int check_file(const Binding *binding, const ElfFile *elf, const char *inner_path,
                      char **ret_error) {
        int r = check_path(elf, inner_path, ret_error);

        return r < 0 ? r : check_build(binding, elf, ret_error);
}

/* That a program has no such function may mean that it only starts what was meant. */
static int resolve_sites(const Binding *binding, ElfFile *elf, BindingSites *ret,
                         char **ret_error) {
        _cleanup_free_ char *sentence = NULL, *running = NULL;
        int r;

        r = binding_resolve_sites(binding, elf, ret, &sentence);
        if (r >= 0 || !sentence)
                return r;
        if (r != -ESRCH || !binding_takes_program(binding))
                return sentence_error(r, ret_error, "%s", sentence);
        running = binding_running_program(binding);
        if (running && !streq_empty(running, binding->view.program))
                return sentence_error(r, ret_error,
                                      "%s. That is the program of ExecStart= of %s, whose main "
                                      "process runs %s: write Executable=%s if that is meant",
                                      sentence, binding->unit, running, running);
        return sentence_error(r, ret_error,
                              "%s. That is the program of ExecStart= of %s: if another one is "
                              "meant, write Executable=, or the unit that runs it",
                              sentence, binding->unit);
}

int binding_resolve(Binding *binding, BindingFile **ret_file, char **ret_error) {
        _cleanup_(binding_sites_done) BindingSites sites = {};
        BindingResolved *resolved = &binding->resolved;
        _cleanup_free_ char *path = NULL, *build_id = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        InlinedCopies copies = {};
        const struct stat *st;
        int r;

        r = binding_check(binding, ret_error);
        if (r < 0)
                return r;
        if (binding_has_events(binding))
                return binding_resolve_events(binding, ret_file, ret_error);
        if (!binding_has_file(binding))
                return binding_resolve_call(binding, ret_file, ret_error);
        r = binding_open_executable(binding, &path, &elf, ret_error);
        if (r < 0)
                return r;
        /* What was written since it was read is found when it is compared. */
        st = elf_file_stat(elf);
        elf_file_set_patient(elf, binding->wants_copies);
        r = check_file(binding, elf, path, ret_error);
        if (r >= 0)
                r = resolve_sites(binding, elf, &sites, ret_error);
        if (r < 0)
                return r;
        /* A copy of a USDT probe has a note of its own. */
        if (binding->wants_copies && sites.start.n_places == 0)
                r = inlined_copies_count(elf, sites.start.offset, now_ns() + COUNTING_NS, &copies);
        if (r < 0)
                return r;
        r = free_and_strdup(&build_id, elf_file_build_id(elf));
        if (r < 0)
                return r;
        r = binding_file_read(elf, &file);
        if (r < 0)
                return r;

        resolved->device = st->st_dev;
        resolved->inode = st->st_ino;
        resolved->mapped = file_identify_mapping(file->fd);
        resolved->stamp = file_stamp_of(elf_file_fd(elf), st);
        r = free_and_strdup(&resolved->path, elf_file_path(elf));
        if (r < 0)
                return r;
        free(resolved->inner_path);
        resolved->inner_path = TAKE_PTR(path);
        free(resolved->build_id);
        resolved->build_id = TAKE_PTR(build_id);
        binding_sites_done(&resolved->sites);
        resolved->sites = sites;
        resolved->copies = copies;
        sites = (BindingSites) {};
        binding_read_probes(binding, elf_file_fd(elf));
        *ret_file = TAKE_PTR(file);
        return 0;
}
