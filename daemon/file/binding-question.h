/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_BINDING_QUESTION_H
#define FILE_BINDING_QUESTION_H

#include "base/packet.h"
#include "binding/binding.h"

/*
 * What is asked about files, and answered, as packets: so that another process can read the files.
 * Two questions of the same bytes have the same answer.
 */

/* Where do the probes of this binding go? Returns 0, -ENOMEM, -EMSGSIZE. */
int question_put_resolve(Packet *question, const Binding *binding);

/* What has become of the file that the binding was resolved in? */
int question_put_current(Packet *question, const Binding *binding);

/* Which file is that? */
int question_put_identify(Packet *question, const char *path);

/*
 * Do processes of its unit, in that cgroup, run the code that the binding is on? wants_old: is
 * there, even so, one that runs what was at its path before?
 */
int question_put_look(Packet *question, const Binding *binding, bool wants_old);

/*
 * How many processes of the machine have mapped its file, and how many of them outside its cgroup?
 */
int question_put_count(Packet *question, const Binding *binding);

typedef struct FileLook {
        bool is_early;     /* the unit starts a container that is not there yet */
        bool is_mains;     /* the main process has loaded a library of that name */
        bool is_elsewhere; /* they have loaded the library of that name from another path */
        bool is_other;     /* what the unit's processes see at its path is another file */
        bool is_mapped;    /* one has mapped the file */
        bool is_replaced;  /* one has mapped what was at its path before */
        OldProgram old;    /* one whose program that is */
        unsigned n_processes;
        char *running; /* what the main process runs; NULL: it is not known */
} FileLook;

void file_look_done(FileLook *look);

/*
 * Reads the files and writes the answer, and *ret_fd if one goes with it. Returns 0 or -EBADMSG.
 * This is what can take for ever.
 */
int question_answer(Packet *question, Packet *answer, int *ret_fd);

/*
 * As binding_resolve(), for a binding of the question's configuration. Takes fd over, also on
 * failure.
 */
int answer_take_resolved(Packet *answer, int fd, Binding *binding, BindingFile **ret_file,
                         char **ret_error);

typedef enum FileChange {
        FILE_IS_SAME,
        /* its mode, owner or links: what is in it was written when it was before */
        FILE_IS_TOUCHED,
        FILE_IS_REWRITTEN, /* in place, or copied to another layer of an overlay */
        FILE_IS_OTHER,     /* it is another one, or none */
} FileChange;

/* The binding is that of the question. Returns a FileChange or a negative errno. */
int answer_take_current(Packet *answer, const Binding *binding, FileStamp *ret_now);

/* 0 or a negative errno. */
int answer_take_look(Packet *answer, FileLook *ret);

/* 0 or a negative errno. */
int answer_take_count(Packet *answer, FileUsers *ret);

/*
 * As the file is known to others: *ret_is_program as elf_file_is_program(). 0, or why it cannot be
 * opened.
 */
int answer_take_identity(Packet *answer, dev_t *ret_device, ino_t *ret_inode, bool *ret_is_program);

#endif
