/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_QUESTION_H
#define FILE_QUESTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/packet.h"

/* The questions about files that are under way, in the order in which they were asked. */

typedef enum QuestionState {
        STATE_QUEUED,
        STATE_ASKED,
        STATE_ANSWERED,
} QuestionState;

typedef struct FileQuestion {
        struct FileQuestion *next;
        unsigned id;
        uid_t user; /* whose tlobd wants to know; 0: this one */
        QuestionState state;
        bool late;        /* it is not answered in time */
        bool told;        /* that it is late, or answered, to who did not wait */
        bool waited;      /* somebody has been told to come back */
        bool is_aside;    /* nothing that is measured depends on it */
        bool is_of_unit;  /* processes of a unit are looked at, too, and place is that */
        char *place;      /* a mount, a directory, or a unit; NULL: nobody needed to know */
        char *path_place; /* with is_of_unit; the same: of the path */
        char *path;       /* for people */
        uint64_t since;   /* when it came into this state */
        int error;        /* with STATE_ANSWERED: of the reader; 0: answer is there */
        int fd;
        size_t size, answer_size;
        uint8_t *answer;
        uint8_t bytes[];
} FileQuestion;

typedef struct FileQuestions {
        FileQuestion *first, **last;
        size_t n;
        unsigned last_id;
} FileQuestions;

void file_questions_init(FileQuestions *questions);
void file_questions_done(FileQuestions *questions);

/* The one of the same bytes; NULL if there is none. */
FileQuestion *file_questions_find(const FileQuestions *questions, const Packet *packet);

/*
 * path: that it is about; place: as file_place(), or NULL: that of the path. Returns 0, -ENOBUFS
 * (there are too many), -ENOMEM.
 */
int file_questions_add(FileQuestions *questions, const Packet *packet, const char *path,
                       const char *place, FileQuestion **ret);
void file_questions_drop(FileQuestions *questions, FileQuestion *question);

/* How many are not answered that are of the tlobd of users, and of that user's. */
void file_questions_count_of_users(const FileQuestions *questions, uid_t user, size_t *ret_all,
                                   size_t *ret_of_user);

/*
 * Its answer was taken, by one of those who have asked it: it is dropped, as soon as the others are
 * told, who ask again.
 */
void file_questions_finish(FileQuestions *questions, FileQuestion *question);

/*
 * Drops answers that nobody has come back for, or has asked for: all that are old, and of the
 * others all but the last.
 */
void file_questions_drop_unclaimed(FileQuestions *questions);

/* When that is due for this one, by now_usec(); 0: its answer is not there, or to be told first. */
uint64_t file_question_kept_until(const FileQuestion *question);

/* Whose fault it is if it takes long; owned by the question. */
const char *file_question_place(FileQuestion *question);

/* Must it wait until that one is answered? */
bool file_question_meets(FileQuestion *question, FileQuestion *other);

/* Of two that are of units: are their paths in one place? */
bool file_question_is_beside(FileQuestion *question, FileQuestion *other);

void file_question_set_state(FileQuestion *question, QuestionState state);

/* error: why there is no answer, or 0. Who was told that it is late is told again. */
void file_question_set_answered(FileQuestion *question, int error);

#endif
