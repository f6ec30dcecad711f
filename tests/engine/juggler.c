/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program whose windows go from thread to thread, each with the address of a ball. It does what
 * its arguments say:
 *
 *   begin:K end:K  the mark "ball" begins and ends, with the key K
 *   pass:N         begin, hand the ball to another thread, which ends; N times, one after the other
 *   crowd:N        the same from three threads to three others, N times each, all at once
 *   nap:NS         begin, sleep so long while the other thread has the ball, which then ends; and
 *                  then write "nap START END TID"
 *   call:N         as pass, between the functions juggler_throw() and juggler_catch()
 *   short:N        the same between juggler_begin() and juggler_end(), by an int, N times
 *   probe:N        as pass, between USDT probes that have the key in many registers
 *   flood:MS       begin and end all the time, for so long, with few keys
 *   again:N        begin, begin with the same key, and end, each millisecond, N times; and then
 *                  write "longest NS", which none of these windows can be longer than
 *   lose:N         begin N times, each with another key, and end none of them
 *   fork:K         begin; a child ends the same key, begins another, and exits
 *   exec           become "true"
 *   say:WORD       write the word to standard output, and wait for a line on standard input
 *
 * START and END, of CLOCK_MONOTONIC, are read outside the window.
 */

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <time.h>
#include <tlob-mark.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

TLOB_MARK(ball);
TLOB_MARK(torch); /* which has a key only where it begins */

typedef struct Ball {
        unsigned long weight;
} Ball;

NOINLINE void juggler_throw(const Ball *ball, int height);
NOINLINE void juggler_catch(const Ball *ball);

void juggler_throw(const Ball *ball, int height) {
        __asm__ volatile("" ::"r"(ball), "r"(height) : "memory");
}

void juggler_catch(const Ball *ball) {
        __asm__ volatile("nop" ::"r"(ball) : "memory");
}

NOINLINE void juggler_begin(int ball);
NOINLINE void juggler_end(int ball);

void juggler_begin(int ball) {
        __asm__ volatile("nop; nop" ::"r"(ball) : "memory");
}

void juggler_end(int ball) {
        __asm__ volatile("nop; nop; nop" ::"r"(ball) : "memory");
}

/* What such a function leaves alone: all but the return address, where that is in a register. */
#if defined(__aarch64__)
#define CALL_BALL(function, ball)                                                                  \
        do {                                                                                       \
                register unsigned long first __asm__("x0") = (ball);                               \
                __asm__ volatile("bl " #function : "+r"(first)::"memory", "x30");                  \
        } while (0)
#define KEPT "x19"
#else
#define CALL_BALL(function, ball) __asm__ volatile("call " #function : "+D"(ball)::"memory")
#define KEPT                      "r12"
#endif

/* Callers may leave in the upper half of the register what was there. */
static void short_integers(unsigned long n) {
        for (unsigned long i = 1; i <= n; i++) {
                unsigned long begin = i | (i << 40), end = i;

                CALL_BALL(juggler_begin, begin);
                CALL_BALL(juggler_end, end);
        }
}

/* Places where the same argument lies in different ways. */
static NOINLINE void probe_throw(const Ball *ball, unsigned long way) {
        const Ball *volatile on_stack = ball;

        switch (way % 3) {
        case 0:
                STAP_PROBE2(juggler, throw, way, ball);
                break;
        case 1: {
                register const Ball *kept __asm__(KEPT) = ball;
                __asm__ volatile("" : "+r"(kept));
                STAP_PROBE2(juggler, throw, 1, kept);
                break;
        }
        default:
                STAP_PROBE2(juggler, throw, 2, on_stack);
        }
}

static NOINLINE void probe_catch(const Ball *ball) {
        STAP_PROBE2(juggler, catch, 0, ball);
}

typedef enum Way {
        BY_MARK,
        BY_CALL,
        BY_PROBE,
} Way;

/* From one thread to another. */
typedef struct Hands {
        sem_t thrown, caught;
        Ball *ball; /* NULL: there are no more */
        Way way;
} Hands;

static void throw(Way way, Ball *ball) {
        if (way == BY_MARK)
                tlob_begin_key(ball, ball);
        else if (way == BY_CALL)
                juggler_throw(ball, 3);
        else
                probe_throw(ball, ball->weight);
}

static void catch (Way way, Ball *ball) {
        if (way == BY_MARK)
                tlob_end_key(ball, ball);
        else if (way == BY_CALL)
                juggler_catch(ball);
        else
                probe_catch(ball);
}

static void *catcher(void *userdata) {
        Hands *hands = userdata;

        for (;;) {
                while (sem_wait(&hands->thrown) < 0)
                        ;
                if (!hands->ball)
                        return NULL;
                catch (hands->way, hands->ball);
                (void) sem_post(&hands->caught);
        }
}

static void start_catcher(Hands *hands, Way way, pthread_t *ret) {
        *hands = (Hands) { .way = way };
        if (sem_init(&hands->thrown, 0, 0) < 0 || sem_init(&hands->caught, 0, 0) < 0 ||
            pthread_create(ret, NULL, catcher, hands) != 0)
                abort();
}

static void hand(Hands *hands, Ball *ball) {
        hands->ball = ball;
        (void) sem_post(&hands->thrown);
        while (ball && sem_wait(&hands->caught) < 0)
                ;
}

static void pass(Way way, unsigned long n) {
        pthread_t thread;
        Hands hands;

        start_catcher(&hands, way, &thread);
        for (unsigned long i = 0; i < n; i++) {
                Ball ball = { i };

                throw(way, &ball);
                hand(&hands, &ball);
        }
        hand(&hands, NULL);
        (void) pthread_join(thread, NULL);
}

static void *thrower(void *userdata) {
        pass(BY_MARK, *(const unsigned long *) userdata);
        return NULL;
}

static void crowd(unsigned long n) {
        pthread_t threads[3];

        for (size_t i = 0; i < 3; i++)
                if (pthread_create(&threads[i], NULL, thrower, &n) != 0)
                        abort();
        for (size_t i = 0; i < 3; i++)
                (void) pthread_join(threads[i], NULL);
}

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static void nap(unsigned long ns) {
        const struct timespec ts = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };
        uint64_t start, end;
        pthread_t thread;
        Hands hands;
        Ball ball = { 0 };

        start_catcher(&hands, BY_MARK, &thread);
        start = now_ns();
        throw(BY_MARK, &ball);
        (void) nanosleep(&ts, NULL);
        hand(&hands, &ball);
        end = now_ns();
        hand(&hands, NULL);
        (void) pthread_join(thread, NULL);
        (void) printf("nap %llu %llu %d\n", (unsigned long long) start, (unsigned long long) end,
                      gettid());
        (void) fflush(stdout);
}

static void flood(unsigned long ms) {
        uint64_t end = now_ns() + ms * 1000000;

        for (unsigned long i = 0; now_ns() < end; i++) {
                tlob_begin_key(ball, i % 3);
                tlob_end_key(ball, i % 3);
        }
}

static void again(unsigned long n) {
        const struct timespec ts = { .tv_nsec = 1000000 };
        uint64_t longest = 0;

        for (unsigned long i = 0; i < n; i++) {
                uint64_t start = now_ns(), length;

                tlob_begin_key(ball, 5);
                tlob_begin_key(ball, 5);
                (void) nanosleep(&ts, NULL);
                tlob_end_key(ball, 5);
                length = now_ns() - start;
                if (length > longest)
                        longest = length;
        }
        (void) printf("longest %llu\n", (unsigned long long) longest);
        (void) fflush(stdout);
}

static void lose(unsigned long n) {
        for (unsigned long i = 0; i < n; i++)
                tlob_begin_key(ball, 1000000 + i);
}

static void fork_with(unsigned long key) {
        pid_t pid;

        tlob_begin_key(ball, key);
        pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0) {
                tlob_end_key(ball, key);
                tlob_begin_key(ball, key + 1);
                _exit(0);
        }
        (void) waitpid(pid, NULL, 0);
}

static void say(const char *word) {
        char c;

        (void) printf("%s\n", word);
        (void) fflush(stdout);
        while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
                ;
}

/* Never: so that the mark is in the file. */
static NOINLINE void torch(void) {
        tlob_begin_key(torch, 1);
        tlob_end(torch);
}

static void act(const char *word) {
        const char *colon = strchr(word, ':');
        unsigned long n = colon ? strtoul(colon + 1, NULL, 10) : 0;

        if (strncmp(word, "begin:", 6) == 0)
                tlob_begin_key(ball, n);
        else if (strncmp(word, "end:", 4) == 0)
                tlob_end_key(ball, n);
        else if (strncmp(word, "pass:", 5) == 0)
                pass(BY_MARK, n);
        else if (strncmp(word, "call:", 5) == 0)
                pass(BY_CALL, n);
        else if (strncmp(word, "short:", 6) == 0)
                short_integers(n);
        else if (strncmp(word, "probe:", 6) == 0)
                pass(BY_PROBE, n);
        else if (strncmp(word, "crowd:", 6) == 0)
                crowd(n);
        else if (strncmp(word, "nap:", 4) == 0)
                nap(n);
        else if (strncmp(word, "flood:", 6) == 0)
                flood(n);
        else if (strncmp(word, "again:", 6) == 0)
                again(n);
        else if (strncmp(word, "lose:", 5) == 0)
                lose(n);
        else if (strncmp(word, "fork:", 5) == 0)
                fork_with(n);
        else if (strncmp(word, "say:", 4) == 0)
                say(word + 4);
        else if (strcmp(word, "torch") == 0)
                torch();
        else if (strcmp(word, "exec") == 0)
                (void) execlp("true", "true", NULL);
        else
                abort();
}

int main(int argc, char *argv[]) {
        for (int i = 1; i < argc; i++)
                act(argv[i]);
        return 0;
}
