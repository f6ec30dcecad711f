/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_FILES_H
#define FILE_FILES_H

#include "binding/binding.h"
#include "file/binding-question.h"

/*
 * Questions about files, which other processes answer: at once, or later, or never. Whoever asks
 * waits for a moment at most; after that, files_dispatch() tells when to ask the same again.
 *
 * Errors that all questions have beside their own, with a sentence: -EINPROGRESS it is being looked
 * at, -ETIMEDOUT it was not answered in time. *ret_id is what files_dispatch() tells then; after
 * -ETIMEDOUT, too, if the answer comes after all.
 *
 * About a binding that has no file nobody is asked: it is as it should be.
 */
typedef struct Files Files;

/* Starts a process. timeout_usec: after which a file system counts as one that does not answer. */
int files_new(uint64_t timeout_usec, Files **ret);
Files *files_free(Files *files);
DEFINE_CLEANUP(Files, files_free);

/* Readable when there is something to dispatch. */
int files_get_fd(const Files *files);

/* A question has been answered, or will not be in time. */
typedef void (*FilesHandler)(unsigned id, void *userdata);

/* The handler may ask. Returns how often it was called, or a negative errno. */
int files_dispatch(Files *files, FilesHandler handler, void *userdata);

/*
 * Much is going to be asked: nobody waits for the next answers, not even for a moment, so that
 * several readers work at once while who asks goes on.
 */
void files_expect_many(Files *files);

/* Is there a question that may yet be answered in time? */
bool files_is_busy(const Files *files);

/* One on which depends what is measured, as does no files_count()? */
bool files_is_setting_up(const Files *files);

/* Is there one that has not been answered in time, and is not yet? */
bool files_are_late(const Files *files);

/* As binding_resolve(). */
int files_resolve(Files *files, Binding *binding, unsigned *ret_id, BindingFile **ret_file,
                  char **ret_error);

/*
 * Which file is that, and is it a program, as elf_file_is_program() says? 0, or a negative errno,
 * also if that cannot be told at once.
 */
int files_identify(Files *files, const char *path, dev_t *ret_device, ino_t *ret_inode,
                   bool *ret_is_program);

/*
 * What its unit's processes do with the file of a binding that has its probes: see
 * question_put_look().
 */
int files_look(Files *files, const Binding *binding, bool wants_old, unsigned *ret_id,
               FileLook *ret);

/*
 * Which processes of the machine have mapped its file: see question_put_count(). Never waits, not
 * even for a moment: a machine can have many processes.
 */
int files_count(Files *files, const Binding *binding, unsigned *ret_id, FileUsers *ret);

/*
 * What has become of the file that the binding was resolved in, at that path? A FileChange, and how
 * it was last written, or a negative errno.
 */
int files_compare(Files *files, const Binding *binding, unsigned *ret_id, FileStamp *ret_now);

#endif
