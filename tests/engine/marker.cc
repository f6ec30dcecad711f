/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program with marks, which does what its arguments say:
 *
 *   pair:N     begin and end the mark "request", N times
 *   begin end  one of them
 *   scope:N    a scope of the same mark, left by different returns, N times
 *   throw:N    the same, left by an exception
 *   other:N    the same in a file in C
 *   library:N  the same in a library
 *   nest:N     a scope in a scope, N times
 *   jump       begin, and longjmp() away
 *   thread:N   four threads at once, each with N pairs
 *   leave      a thread that calls pthread_exit() in a scope
 *   signal:N   a pair, with a pair of the mark "handler" in a signal handler in between, N times
 *   fork:N     begin, fork a child that ends and then does N pairs, wait for it, end
 *   nap:NS     begin, sleep so long, end; and then writes "nap START END TID"
 *   look       write "listeners-N", how many listen to "request", and wait for a line on standard
 *              input
 *   exit exec  begin, and exit, or become "true"
 *
 * START and END, of CLOCK_MONOTONIC, are read outside the window.
 */

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "marker.h"
#include "tlob-mark.h"

namespace marker {

TLOB_MARK(request);
TLOB_MARK(handler);

using Number = unsigned long;

static void pair(Number n) {
        for (Number i = 0; i < n; i++) {
                tlob_begin(request);
                tlob_end(request);
        }
}

static void begin(Number) {
        tlob_begin(request);
}

static void end(Number) {
        tlob_end(request);
}

static Number leave_early(Number i) {
        TLOB_SCOPE(request);

        if (i % 3 == 0)
                return i;
        if (i % 3 == 1)
                return i + 1;
        return 2 * i;
}

static void scope(Number n) {
        for (Number i = 0; i < n; i++)
                leave_early(i);
}

template <class T> static void leave_by_throw(T what) {
        TLOB_SCOPE(request);

        throw what;
}

static void throw_out(Number n) {
        for (Number i = 0; i < n; i++)
                try {
                        leave_by_throw(i);
                } catch (Number) {
                }
}

static void nest(Number n) {
        for (Number i = 0; i < n; i++) {
                TLOB_SCOPE(request);

                leave_early(i);
        }
}

static jmp_buf away;

static void jump(Number) {
        if (setjmp(away) == 0) {
                tlob_begin(request);
                longjmp(away, 1);
        }
}

static void *run_pairs(void *n) {
        pair(*static_cast<Number *>(n));
        return nullptr;
}

static void thread(Number n) {
        pthread_t threads[4];

        for (pthread_t &t : threads)
                if (pthread_create(&t, nullptr, run_pairs, &n) != 0)
                        abort();
        for (pthread_t t : threads)
                pthread_join(t, nullptr);
}

static void *leave_thread(void *) {
        TLOB_SCOPE(request);

        pthread_exit(nullptr);
}

static void leave(Number) {
        pthread_t thread;

        if (pthread_create(&thread, nullptr, leave_thread, nullptr) != 0)
                abort();
        pthread_join(thread, nullptr);
}

static void handle(int) {
        TLOB_SCOPE(handler);
}

static void signal(Number n) {
        if (std::signal(SIGUSR1, handle) == SIG_ERR)
                abort();
        for (Number i = 0; i < n; i++) {
                tlob_begin(request);
                if (raise(SIGUSR1) != 0)
                        abort();
                tlob_end(request);
        }
}

static void fork(Number n) {
        pid_t child;

        tlob_begin(request);
        child = ::fork();
        if (child == 0) {
                tlob_end(request);
                pair(n);
                _exit(EXIT_SUCCESS);
        }
        if (child < 0 || waitpid(child, nullptr, 0) != child)
                abort();
        tlob_end(request);
}

static std::uint64_t now_ns() {
        timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return static_cast<std::uint64_t>(ts.tv_sec) * 1000000000U + static_cast<std::uint64_t>(ts.tv_nsec);
}

static void nap(Number ns) {
        const timespec time = { static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000) };
        const std::uint64_t start_ns = now_ns();
        std::uint64_t end_ns;

        tlob_begin(request);
        nanosleep(&time, nullptr);
        tlob_end(request);
        end_ns = now_ns();
        std::printf("nap %llu %llu %i\n", static_cast<unsigned long long>(start_ns),
                    static_cast<unsigned long long>(end_ns), gettid());
}

static void look(Number) {
        char line[16];

        if ((tlob_enabled(request) != 0) != (tlob_mark_request.listeners != 0))
                abort();
        std::printf("listeners-%u\n", tlob_mark_request.listeners);
        std::fflush(stdout);
        if (!std::fgets(line, sizeof(line), stdin))
                std::exit(EXIT_FAILURE);
}

static void exit(Number) {
        tlob_begin(request);
        std::exit(EXIT_SUCCESS);
}

static void exec(Number) {
        tlob_begin(request);
        execlp("true", "true", nullptr);
        abort();
}

static const struct {
        const char *name;
        void (*act)(Number n);
} words[] = {
        { "pair", pair },
        { "begin", begin },
        { "end", end },
        { "scope", scope },
        { "throw", throw_out },
        { "other", marker_other },
        { "library", marker_library },
        { "nest", nest },
        { "jump", jump },
        { "thread", thread },
        { "leave", leave },
        { "signal", signal },
        { "fork", fork },
        { "nap", nap },
        { "look", look },
        { "exit", exit },
        { "exec", exec },
};

static void act(const char *word) {
        const char *colon = std::strchr(word, ':');
        const size_t length = colon ? static_cast<size_t>(colon - word) : std::strlen(word);

        for (const auto &w : words)
                if (std::strlen(w.name) == length && std::strncmp(w.name, word, length) == 0) {
                        w.act(colon ? std::strtoul(colon + 1, nullptr, 10) : 0);
                        return;
                }
        std::fprintf(stderr, "marker: '%s' is no word\n", word);
        std::exit(EXIT_FAILURE);
}

} // namespace marker

int main(int argc, char *argv[]) {
        for (int i = 1; i < argc; i++)
                marker::act(argv[i]);
        return 0;
}
