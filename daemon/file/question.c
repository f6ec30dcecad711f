/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A question is known by its bytes: who asks it again gets the answer that has come meanwhile. An
 * answer has an open file with it, so those that nobody comes back for do not pile up.
 */

#include "file/question.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "file/place.h"

#define QUESTIONS_MAX  8192
#define UNCLAIMED_USEC UINT64_C(10000000)
#define UNCLAIMED_MAX  64

static FileQuestion *question_free(FileQuestion *question) {
        if (!question)
                return NULL;
        safe_close(question->fd);
        free(question->answer);
        free(question->path);
        free(question->place);
        free(question->path_place);
        free(question);
        return NULL;
}
DEFINE_CLEANUP(FileQuestion, question_free);

void file_questions_init(FileQuestions *questions) {
        *questions = (FileQuestions) {};
        questions->last = &questions->first;
}

void file_questions_done(FileQuestions *questions) {
        for (FileQuestion *question = questions->first, *next; question; question = next) {
                next = question->next;
                question_free(question);
        }
        file_questions_init(questions);
}

const char *file_question_place(FileQuestion *question) {
        if (!question->place)
                question->place = file_place(question->path);
        return question->place ?: "";
}

/* NULL: it is of no unit, or for want of memory. */
static const char *path_place(FileQuestion *question) {
        if (question->is_of_unit && !question->path_place)
                question->path_place = file_place(question->path);
        return question->path_place;
}

bool file_question_meets(FileQuestion *question, FileQuestion *other) {
        const char *place = file_question_place(other), *own = path_place(question);

        return streq(place, file_question_place(question)) || (own && streq(place, own));
}

bool file_question_is_beside(FileQuestion *question, FileQuestion *other) {
        const char *place = path_place(other), *own = path_place(question);

        return place && own && streq(place, own);
}

FileQuestion *file_questions_find(const FileQuestions *questions, const Packet *packet) {
        for (FileQuestion *q = questions->first; q; q = q->next)
                if (q->size == packet->size && memcmp(q->bytes, packet->data, q->size) == 0)
                        return q;
        return NULL;
}

int file_questions_add(FileQuestions *questions, const Packet *packet, const char *path,
                       const char *place, FileQuestion **ret) {
        _cleanup_(question_freep) FileQuestion *question = NULL;

        if (questions->n >= QUESTIONS_MAX)
                return -ENOBUFS;
        question = malloc(sizeof(*question) + packet->size);
        if (!question)
                return -ENOMEM;
        *question = (FileQuestion) {
                .id = ++questions->last_id,
                .fd = -EBADF,
                .since = now_usec(),
                .path = strdup(path),
                .place = place ? strdup(place) : NULL,
                .size = packet->size,
        };
        memcpy(question->bytes, packet->data, packet->size);
        if (!question->path || (place && !question->place))
                return -ENOMEM;
        if (questions->last_id == 0)
                question->id = ++questions->last_id;

        *questions->last = question;
        questions->last = &question->next;
        questions->n++;
        *ret = TAKE_PTR(question);
        return 0;
}

void file_questions_count_of_users(const FileQuestions *questions, uid_t user, size_t *ret_all,
                                   size_t *ret_of_user) {
        *ret_all = *ret_of_user = 0;
        for (const FileQuestion *q = questions->first; q; q = q->next)
                if (q->user != 0 && q->state != STATE_ANSWERED) {
                        *ret_all += 1;
                        *ret_of_user += q->user == user;
                }
}

void file_questions_drop(FileQuestions *questions, FileQuestion *question) {
        FileQuestion **p = &questions->first;

        while (*p != question)
                p = &(*p)->next;
        *p = question->next;
        if (!*p)
                questions->last = p;
        questions->n--;
        question_free(question);
}

void file_questions_finish(FileQuestions *questions, FileQuestion *question) {
        if (!question->waited || question->told) {
                file_questions_drop(questions, question);
                return;
        }
        /* No question is like one without bytes. */
        question->size = 0;
        question->fd = safe_close(question->fd);
        free(question->answer);
        question->answer = NULL;
        question->answer_size = 0;
}

static bool is_unclaimed(const FileQuestion *question) {
        return question->state == STATE_ANSWERED && question->told;
}

uint64_t file_question_kept_until(const FileQuestion *question) {
        return is_unclaimed(question) ? question->since + UNCLAIMED_USEC : 0;
}

void file_questions_drop_unclaimed(FileQuestions *questions) {
        uint64_t now = now_usec();
        size_t n = 0;

        for (const FileQuestion *q = questions->first; q; q = q->next)
                n += is_unclaimed(q);
        for (FileQuestion *q = questions->first, *next; q && n > 0; q = next) {
                next = q->next;
                if (!is_unclaimed(q) ||
                    (q->size > 0 && n <= UNCLAIMED_MAX && now < file_question_kept_until(q)))
                        continue;
                file_questions_drop(questions, q);
                n--;
        }
}

void file_question_set_state(FileQuestion *question, QuestionState state) {
        question->state = state;
        question->since = now_usec();
}

void file_question_set_answered(FileQuestion *question, int error) {
        question->error = error;
        question->told = false;
        file_question_set_state(question, STATE_ANSWERED);
}
