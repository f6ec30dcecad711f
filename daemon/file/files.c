/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Who answers which question, and how long somebody waits for it.
 *
 * Nearly all are answered within a millisecond, so whoever asks waits: that keeps the rest simple.
 * But it waits for PATIENCE_USEC altogether, which comes back slowly, whatever is asked. After
 * that, questions queue and their answers come through the event loop.
 *
 * A reader that waits for a file system that hangs cannot be ended. It is left alone, and its
 * answer still counts when it comes. Until then nothing else is asked about files in that place,
 * which is a mount, or a directory: so a place that hangs costs one reader, however many bindings
 * are there. Where processes of a unit are looked at, too, these may be what hangs: then the place
 * is that unit, and nothing is said of others in the same directory, unless two such hang there.
 */

#include "file/files.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/sentence.h"
#include "binding/executable.h"
#include "binding/resolve.h"
#include "file/binding-question.h"
#include "file/question.h"
#include "file/reader.h"

#define READERS_MAX          12 /* those that hang among them */
#define READERS_OF_USERS_MAX 2  /* that read for the tlobd of users */
#define READERS_OF_UNITS_MAX 8  /* that processes of units, or their files, keep waiting */
#define READERS_OF_PLACE_MAX 2  /* of these, where their files are in one place */
#define WORKING_MAX          4  /* that may yet answer in time */
#define PATIENCE_USEC        UINT64_C(300000)
#define PATIENCE_PART        10 /* of the time that passes: comes back */
#define SLOW_USEC            UINT64_C(300000)

typedef struct Reader {
        int fd;              /* -EBADF: there is none */
        FileQuestion *asked; /* NULL: it has nothing to do */
} Reader;

struct Files {
        uint64_t timeout_usec;
        uint64_t patience_usec;
        uint64_t patience_since;
        FileReaders starter;
        int epoll_fd;
        int timer_fd;
        FileQuestions questions;
        Reader readers[READERS_MAX];
        Packet packet;
};

Files *files_free(Files *files) {
        if (!files)
                return NULL;
        file_questions_done(&files->questions);
        for (size_t i = 0; i < READERS_MAX; i++)
                safe_close(files->readers[i].fd);
        file_readers_stop(&files->starter);
        safe_close(files->timer_fd);
        safe_close(files->epoll_fd);
        free(files);
        return NULL;
}

int files_new(uint64_t timeout_usec, Files **ret) {
        _cleanup_(files_freep) Files *files = malloc(sizeof(*files));
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = READERS_MAX };
        int r;

        if (!files)
                return -ENOMEM;
        *files = (Files) {
                .timeout_usec = timeout_usec,
                .patience_usec = PATIENCE_USEC,
                .patience_since = now_usec(),
                .starter.fd = -EBADF,
                .epoll_fd = -EBADF,
                .timer_fd = -EBADF,
        };
        file_questions_init(&files->questions);
        for (size_t i = 0; i < READERS_MAX; i++)
                files->readers[i].fd = -EBADF;

        r = file_readers_start(&files->starter);
        if (r < 0)
                return r;
        files->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        files->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (files->epoll_fd < 0 || files->timer_fd < 0 ||
            epoll_ctl(files->epoll_fd, EPOLL_CTL_ADD, files->timer_fd, &event) < 0)
                return -errno;
        *ret = TAKE_PTR(files);
        return 0;
}

int files_get_fd(const Files *files) {
        return files->epoll_fd;
}

/* Has its place kept somebody waiting for so long that it is of no use to ask more there? */
static bool place_is_slow(const Files *files, FileQuestion *question, bool *ret_late) {
        uint64_t now = now_usec();
        unsigned n_of_units = 0, n_beside = 0;
        bool slow = false;

        *ret_late = false;
        for (size_t i = 0; i < READERS_MAX; i++) {
                FileQuestion *other = files->readers[i].asked;

                if (!other || other == question || (!other->late && now - other->since < SLOW_USEC))
                        continue;
                n_of_units += other->is_of_unit;
                n_beside += file_question_is_beside(question, other);
                if (!file_question_meets(question, other))
                        continue;
                *ret_late |= other->late;
                slow = true;
        }
        return slow || n_beside >= READERS_OF_PLACE_MAX ||
               (question->is_of_unit && n_of_units >= READERS_OF_UNITS_MAX);
}

static void close_reader(Reader *reader) {
        reader->fd = safe_close(reader->fd);
        if (reader->asked)
                file_question_set_answered(reader->asked, -EIO);
        reader->asked = NULL;
}

/*
 * A reader that has nothing to do, a new one if need be. NULL: all that there may be are at work.
 */
static int get_reader(Files *files, Reader **ret) {
        struct epoll_event event = { .events = EPOLLIN };
        Reader *unused = NULL;
        unsigned working = 0;
        int r;

        *ret = NULL;
        for (size_t i = 0; i < READERS_MAX; i++) {
                Reader *reader = &files->readers[i];

                if (reader->fd >= 0 && !reader->asked) {
                        *ret = reader;
                        return 0;
                }
                working += reader->asked && !reader->asked->late;
                if (reader->fd < 0)
                        unused = reader;
        }
        if (!unused || working >= WORKING_MAX)
                return 0;

        r = file_readers_add(&files->starter, &unused->fd);
        if (r == -EPIPE || r == -ECONNRESET) {
                file_readers_stop(&files->starter);
                r = file_readers_start(&files->starter);
                if (r >= 0)
                        r = file_readers_add(&files->starter, &unused->fd);
        }
        if (r < 0)
                return r;
        event.data.u32 = (uint32_t) (unused - files->readers);
        if (epoll_ctl(files->epoll_fd, EPOLL_CTL_ADD, unused->fd, &event) < 0) {
                r = -errno;
                close_reader(unused);
                return r;
        }
        *ret = unused;
        return 0;
}

/* Gives a question to a reader. Returns false if none is free for any other one, either. */
static bool ask(Files *files, FileQuestion *question) {
        bool late;
        int r;

        if (place_is_slow(files, question, &late)) {
                question->late |= late;
                return true;
        }
        /* A reader may have gone while nobody has asked it anything. */
        for (unsigned i = 0; i <= READERS_MAX; i++) {
                Reader *reader;

                r = get_reader(files, &reader);
                if (r < 0)
                        file_question_set_answered(question, r);
                if (!reader)
                        return r < 0;
                packet_init(&files->packet);
                memcpy(files->packet.data, question->bytes, question->size);
                files->packet.size = question->size;
                if (packet_send(reader->fd, &files->packet, -EBADF) >= 0) {
                        reader->asked = question;
                        file_question_set_state(question, STATE_ASKED);
                        question->late = false;
                        return true;
                }
                close_reader(reader);
        }
        return false;
}

static void ask_queued(Files *files) {
        for (FileQuestion *q = files->questions.first; q; q = q->next)
                if (q->state == STATE_QUEUED && !ask(files, q))
                        return;
}

/* What a reader has sent, or its end. */
static void take_answer(Reader *reader, Packet *packet) {
        FileQuestion *question = reader->asked;
        int fd, r;

        r = packet_receive(reader->fd, packet, &fd);
        if (r == -EINTR || r == -EAGAIN)
                return;
        if (r <= 0 || !question || packet->failed) {
                safe_close(fd);
                close_reader(reader);
                return;
        }
        question->answer = malloc(packet->size);
        if (question->answer) {
                memcpy(question->answer, packet->data, packet->size);
                question->answer_size = packet->size;
        }
        question->fd = fd;
        reader->asked = NULL;
        file_question_set_answered(question, question->answer ? 0 : -ENOMEM);
}

static Reader *reader_of(Files *files, const FileQuestion *question) {
        for (size_t i = 0; i < READERS_MAX; i++)
                if (files->readers[i].asked == question)
                        return &files->readers[i];
        return NULL;
}

static void refill_patience(Files *files) {
        uint64_t now = now_usec();

        files->patience_usec += (now - files->patience_since) / PATIENCE_PART;
        if (files->patience_usec > PATIENCE_USEC)
                files->patience_usec = PATIENCE_USEC;
        files->patience_since = now;
}

void files_expect_many(Files *files) {
        files->patience_usec = 0;
        files->patience_since = now_usec();
}

/* As long as there is patience. */
static void wait_for_answer(Files *files, const FileQuestion *question) {
        refill_patience(files);
        while (question->state == STATE_ASKED && files->patience_usec >= 1000) {
                Reader *reader = reader_of(files, question);
                struct pollfd poll_fd = { .fd = reader->fd, .events = POLLIN };
                uint64_t before = now_usec(), passed;
                int n;

                n = poll(&poll_fd, 1, (int) (files->patience_usec / 1000));
                passed = now_usec() - before;
                files->patience_usec -=
                        passed < files->patience_usec ? passed : files->patience_usec;
                files->patience_since = before + passed;
                if (n > 0)
                        take_answer(reader, &files->packet);
        }
}

static bool is_late(const Files *files, FileQuestion *question, uint64_t now) {
        bool late;

        /* Also one that is not asked yet, as all who could be are at work on files that hang. */
        if (now - question->since >= files->timeout_usec)
                return true;
        return question->state == STATE_QUEUED && place_is_slow(files, question, &late) && late;
}

/* When something is to be done about it; 0: not before it is answered. */
static uint64_t due_usec(const Files *files, const FileQuestion *question) {
        if (question->state != STATE_ANSWERED)
                return question->late ? 0 : question->since + files->timeout_usec;
        return question->waited && !question->told ? 1 : file_question_kept_until(question);
}

/* When the next question may be late, is to be told, or nobody has come back for its answer. */
static void set_timer(Files *files) {
        struct itimerspec timer = {};
        uint64_t next = 0;

        for (const FileQuestion *q = files->questions.first; q; q = q->next) {
                uint64_t due = due_usec(files, q);

                if (due > 0 && (next == 0 || due < next))
                        next = due;
        }
        timer.it_value.tv_sec = (time_t) (next / 1000000);
        timer.it_value.tv_nsec = (long) (next % 1000000) * 1000;
        (void) timerfd_settime(files->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

/* Its answer, which is there. files->packet is the answer. */
static int claim(Files *files, FileQuestion *question, int *ret_fd, char **ret_error) {
        int r = question->error;

        if (r == -EIO)
                r = sentence_error(r, ret_error,
                                   "The process that was reading %s died: the file is damaged, "
                                   "or larger than tlobd can read",
                                   question->path);
        packet_init(&files->packet);
        if (r >= 0) {
                memcpy(files->packet.data, question->answer, question->answer_size);
                files->packet.size = question->answer_size;
                *ret_fd = TAKE_FD(question->fd);
        }
        file_questions_finish(&files->questions, question);
        return r;
}

/* Who reads them may never come back: most of the readers are for what root has. */
static int check_users(const Files *files, uid_t user, char **ret_error) {
        size_t n, n_of_user;

        file_questions_count_of_users(&files->questions, user, &n, &n_of_user);
        if (n < READERS_OF_USERS_MAX && n_of_user == 0)
                return 0;
        return sentence_error(-EBUSY, ret_error, "Other files of users are being read");
}

/*
 * Asks what is in files->packet, of path, unless that is being asked. of_unit: whoever answers
 * looks at processes of the binding's unit, too. Returns 1 if it is new, 0, or a negative errno.
 */
static int pose(Files *files, const char *path, const Binding *binding, bool of_unit,
                FileQuestion **ret, char **ret_error) {
        /* Paths in a container say nothing of the machine, and it may have any file system. */
        bool in_container = binding && binding_may_have_container(binding);
        const char *unit = binding ? binding->unit : NULL;
        const char *place = in_container || of_unit ? unit : NULL;
        uid_t for_user = binding ? binding->lent.user : 0;
        char user[sizeof("user 4294967295")];
        int r;

        *ret = file_questions_find(&files->questions, &files->packet);
        if (*ret)
                return 0;
        /* Nor does what a user says of where a file is. */
        if (for_user != 0) {
                r = check_users(files, for_user, ret_error);
                if (r < 0)
                        return r;
                (void) snprintf(user, sizeof(user), "user %u", for_user);
                place = user;
        }
        file_questions_drop_unclaimed(&files->questions);
        r = file_questions_add(&files->questions, &files->packet, path, place, ret);
        if (r < 0)
                return r;
        (*ret)->user = for_user;
        (*ret)->is_of_unit = of_unit && !in_container && for_user == 0 && unit;
        (void) ask(files, *ret);
        return 1;
}

/* Nobody can tell a file system that hangs from one that is only slow, or from a busy machine. */
static int complain_late(const Files *files, const FileQuestion *question, char **ret_error) {
        char timeout[DURATION_MAX];

        (void) duration_format(files->timeout_usec * NSEC_PER_USEC, timeout);
        if (question->state == STATE_QUEUED)
                return sentence_error(-ETIMEDOUT, ret_error,
                                      "%s waits for another file on its file system, which could "
                                      "not be read within %s: the file system does not answer, "
                                      "or the machine is busy",
                                      question->path, timeout);
        return sentence_error(-ETIMEDOUT, ret_error,
                              "%s could not be read within %s: its file system does not answer, or "
                              "the machine is busy",
                              question->path, timeout);
}

/* The answer, or that it will come. */
static int take_answer_of(Files *files, FileQuestion *question, unsigned *ret_id, int *ret_fd,
                          char **ret_error) {
        int r;

        if (question->state == STATE_ANSWERED) {
                /* Whatever is asked is put into files->packet, in which the answer is to stay. */
                ask_queued(files);
                r = claim(files, question, ret_fd, ret_error);
                set_timer(files);
                return r;
        }

        question->waited = true;
        set_timer(files);
        *ret_id = question->id;
        if (!question->late)
                return sentence_error(-EINPROGRESS, ret_error, "%s is being read", question->path);
        question->told = true;
        return complain_late(files, question, ret_error);
}

/* Asks what is in files->packet, of path, and leaves the answer there. */
static int get_answer(Files *files, const char *path, const Binding *binding, bool of_unit,
                      unsigned *ret_id, int *ret_fd, char **ret_error) {
        FileQuestion *question;
        int r;

        r = pose(files, path, binding, of_unit, &question, ret_error);
        if (r < 0)
                return r;
        /* What a user says may be such that it takes long. */
        if (r > 0 && !(binding && binding->lent.user))
                wait_for_answer(files, question);
        return take_answer_of(files, question, ret_id, ret_fd, ret_error);
}

/* The one that is not told yet. */
static FileQuestion *find_news(const Files *files) {
        uint64_t now = now_usec();

        for (FileQuestion *q = files->questions.first; q; q = q->next) {
                if (q->state != STATE_ANSWERED && !q->late && is_late(files, q, now)) {
                        q->late = true;
                        q->told = false;
                }
                if (q->waited && !q->told && (q->late || q->state == STATE_ANSWERED))
                        return q;
        }
        return NULL;
}

/* All that are there. */
static int take_answers(Files *files) {
        struct epoll_event events[READERS_MAX + 1];
        uint64_t expirations;
        int n;

        n = epoll_wait(files->epoll_fd, events, ELEMENTSOF(events), 0);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        for (int i = 0; i < n; i++)
                if (events[i].data.u32 < READERS_MAX)
                        take_answer(&files->readers[events[i].data.u32], &files->packet);
                else
                        (void) !read(files->timer_fd, &expirations, sizeof(expirations));
        ask_queued(files);
        return 0;
}

/* The handler may take longer than a question: what has been answered meanwhile is not late. */
int files_dispatch(Files *files, FilesHandler handler, void *userdata) {
        FileQuestion *question;
        int r, told = 0;

        r = take_answers(files);
        while (r >= 0 && (question = find_news(files))) {
                question->told = true;
                handler(question->id, userdata);
                told++;
                r = take_answers(files);
        }
        if (r < 0)
                return r;
        file_questions_drop_unclaimed(&files->questions);
        set_timer(files);
        return told;
}

static bool has_waiting(const Files *files, bool aside_too) {
        for (const FileQuestion *q = files->questions.first; q; q = q->next)
                if (q->waited && !q->told && (aside_too || !q->is_aside))
                        return true;
        return false;
}

bool files_is_busy(const Files *files) {
        return has_waiting(files, true);
}

bool files_is_setting_up(const Files *files) {
        return has_waiting(files, false);
}

bool files_are_late(const Files *files) {
        for (const FileQuestion *q = files->questions.first; q; q = q->next)
                if (q->late && q->state != STATE_ANSWERED)
                        return true;
        return false;
}

/* What to call the file of a binding that is not resolved; the caller's. */
static char *describe_file(const Binding *binding) {
        const char *path = binding->executable;

        /* The program says where its libraries are. */
        if (binding->view.program && (!path || path[0] != '/'))
                path = binding->view.program;
        return sentence_make("%s%s", binding->view.root_directory ?: "", path ?: "");
}

int files_resolve(Files *files, Binding *binding, unsigned *ret_id, BindingFile **ret_file,
                  char **ret_error) {
        _cleanup_free_ char *outside = NULL;
        int fd = -EBADF, r;

        if (!binding_has_file(binding))
                return binding_resolve(binding, ret_file, ret_error);
        outside = describe_file(binding);
        if (!outside)
                return -ENOMEM;
        r = question_put_resolve(&files->packet, binding);
        if (r >= 0)
                r = get_answer(files, outside, binding, true, ret_id, &fd, ret_error);
        if (r < 0)
                return r;
        return answer_take_resolved(&files->packet, fd, binding, ret_file, ret_error);
}

int files_identify(Files *files, const char *path, dev_t *ret_device, ino_t *ret_inode,
                   bool *ret_is_program) {
        unsigned id;
        int fd = -EBADF, r;

        r = question_put_identify(&files->packet, path);
        if (r >= 0)
                r = get_answer(files, path, NULL, false, &id, &fd, NULL);
        safe_close(fd);
        return r < 0 ? r
                     : answer_take_identity(&files->packet, ret_device, ret_inode, ret_is_program);
}

int files_look(Files *files, const Binding *binding, bool wants_old, unsigned *ret_id,
               FileLook *ret) {
        int fd = -EBADF, r;

        if (!binding_has_file(binding)) {
                *ret = (FileLook) { .is_mapped = true };
                return 0;
        }
        r = question_put_look(&files->packet, binding, wants_old);
        if (r >= 0)
                r = get_answer(files, binding->resolved.path, binding, true, ret_id, &fd, NULL);
        safe_close(fd);
        return r < 0 ? r : answer_take_look(&files->packet, ret);
}

int files_count(Files *files, const Binding *binding, unsigned *ret_id, FileUsers *ret) {
        FileQuestion *question;
        int fd = -EBADF, r;

        r = question_put_count(&files->packet, binding);
        if (r >= 0)
                r = pose(files, "/proc/self/maps", NULL, false, &question, NULL);
        if (r >= 0)
                question->is_aside = true;
        if (r >= 0)
                r = take_answer_of(files, question, ret_id, &fd, NULL);
        safe_close(fd);
        return r < 0 ? r : answer_take_count(&files->packet, ret);
}

int files_compare(Files *files, const Binding *binding, unsigned *ret_id, FileStamp *ret_now) {
        int fd = -EBADF, r;

        if (!binding_has_file(binding))
                return FILE_IS_SAME;
        if (!binding->resolved.path)
                return FILE_IS_OTHER;
        r = question_put_current(&files->packet, binding);
        if (r >= 0)
                r = get_answer(files, binding->resolved.path, binding, false, ret_id, &fd, NULL);
        safe_close(fd);
        return r < 0 ? r : answer_take_current(&files->packet, binding, ret_now);
}
