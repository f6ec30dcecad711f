/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls reach_call() of the library, as its words say, one after the other:
 *
 *   say:WORD   prints it, and waits for a line; children of crowd: for their own
 *   where      prints the address of reach_call()
 *   call:N     calls it so often, and cost:N ten times, and prints what a call took in the
 *              quickest of them, in picoseconds
 *   thread:N   the same as call:N in a thread
 *   fork       goes on in a child, and ends with it
 *   exec       goes on in the same program, executed anew; exec-thread: a thread does that
 *   crowd:N    in each of N children at once: calls it when all are there and a line has come
 */

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reach-library.h"

static char **words;

static void call(unsigned long n) {
        while (n-- > 0)
                reach_call();
}

static void wait_for_line(void) {
        char c;

        while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
                ;
}

static unsigned long long now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (unsigned long long) ts.tv_sec * 1000000000U + (unsigned long long) ts.tv_nsec;
}

static void cost(unsigned long n) {
        unsigned long long shortest = ULLONG_MAX;

        for (unsigned i = 0; i < 10; i++) {
                unsigned long long begin = now_ns(), took;

                call(n);
                took = now_ns() - begin;
                shortest = took < shortest ? took : shortest;
        }
        (void) printf("%llu\n", shortest * 1000 / n);
}

static void *call_in_thread(void *arg) {
        call(*(unsigned long *) arg);
        return NULL;
}

static void in_thread(void *(*run)(void *arg), void *arg) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, run, arg) != 0)
                abort();
        (void) pthread_join(thread, NULL);
}

static void go_on_in_child(void) {
        pid_t pid = fork();

        if (pid != 0) {
                (void) waitpid(pid, NULL, 0);
                exit(EXIT_SUCCESS);
        }
}

/* words[0] is one that has been done: it becomes the name of the program. */
static void *execute(void *arg) {
        (void) execv("/proc/self/exe", words);
        abort();
}

static void crowd(unsigned long n) {
        int go[2];

        if (pipe(go) < 0)
                abort();
        for (unsigned long i = 0; i < n; i++)
                if (fork() == 0) {
                        char c;

                        (void) close(go[1]);
                        (void) read(go[0], &c, 1);
                        call(1);
                        _exit(EXIT_SUCCESS);
                }
        (void) printf("crowd\n");
        wait_for_line();
        (void) close(go[1]);
        while (wait(NULL) > 0)
                ;
}

static void run(const char *word) {
        const char *colon = strchr(word, ':');
        unsigned long n = colon ? strtoul(colon + 1, NULL, 10) : 0;

        if (strncmp(word, "say:", 4) == 0) {
                (void) printf("%s\n", colon + 1);
                wait_for_line();
        } else if (strcmp(word, "where") == 0)
                (void) printf("%p\n", (void *) reach_call);
        else if (strncmp(word, "call:", 5) == 0)
                call(n);
        else if (strncmp(word, "cost:", 5) == 0)
                cost(n);
        else if (strncmp(word, "thread:", 7) == 0)
                in_thread(call_in_thread, &n);
        else if (strcmp(word, "fork") == 0)
                go_on_in_child();
        else if (strcmp(word, "exec") == 0)
                (void) execute(NULL);
        else if (strcmp(word, "exec-thread") == 0)
                in_thread(execute, NULL);
        else if (strncmp(word, "crowd:", 6) == 0)
                crowd(n);
        else
                abort();
}

int main(int argc, char *argv[]) {
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        for (words = argv + 1; *words; words++)
                run(*words);
        return EXIT_SUCCESS;
}
