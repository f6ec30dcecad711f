/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * tlobd: options, then new, start, loop, free. The exit status is 0 after SIGTERM or SIGINT, 1 when
 * something that is needed is missing, 2 for wrong options, 75 when another version is to go on.
 */

#include <getopt.h>
#include <malloc.h>
#include <signal.h>

#include "backend/backend.h"
#include "bus/bus.h"
#include "config/directories.h"
#include "log.h"
#include "manager/manager.h"
#include "own-program.h"
#include "version.h"

/*
 * What is larger is no part of the heap, from which little is ever given back: tables that stay
 * mostly empty, and what is read once, as the type information of the kernel.
 */
#define MEMORY_SMALL (128 << 10)

static int arg_log_level = LOG_INFO;
static const char *arg_keep_in;
static RuntimeScope arg_scope = RUNTIME_SCOPE_SYSTEM;

static void help(void) {
        (void) printf("tlobd [OPTIONS...]\n\n"
                      "Watches how long marked pieces of code take in services, and reports those "
                      "that\nrun over their budget.\n\n"
                      "  -h --help           Show this help\n"
                      "     --version        Show the version\n"
                      "     --debug          Log more\n"
                      "     --user           Watch the services of the user who runs it\n"
                      "     --keep-in=DIR    Keep probes and counters there for the next tlobd\n\n"
                      "See the tlobd(8) man page for details.\n");
}

/* Returns 1 to go on, 0 if all is done, negative for wrong options. */
static int parse_argv(int argc, char *argv[]) {
        enum {
                ARG_VERSION = 0x100,
                ARG_DEBUG,
                ARG_USER,
                ARG_KEEP_IN,
        };
        static const struct option options[] = {
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, ARG_VERSION },
                { "debug", no_argument, NULL, ARG_DEBUG },
                { "user", no_argument, NULL, ARG_USER },
                { "keep-in", required_argument, NULL, ARG_KEEP_IN },
                {},
        };
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case 'h':
                        help();
                        return 0;
                case ARG_VERSION:
                        (void) printf("tlobd %s\n", VERSION);
                        return 0;
                case ARG_DEBUG:
                        arg_log_level = LOG_DEBUG;
                        break;
                case ARG_USER:
                        arg_scope = RUNTIME_SCOPE_USER;
                        break;
                case ARG_KEEP_IN:
                        arg_keep_in = optarg;
                        break;
                default:
                        return -EINVAL;
                }

        if (optind < argc) {
                log_error("tlobd takes no arguments, but got '%s'.", argv[optind]);
                return -EINVAL;
        }
        if (arg_keep_in && arg_keep_in[0] != '/') {
                log_error("--keep-in= must be an absolute path, but is '%s'.", arg_keep_in);
                return -EINVAL;
        }
        if (arg_keep_in && arg_scope == RUNTIME_SCOPE_USER) {
                log_error("--keep-in= is not possible with --user: a user's tlobd sets no probes "
                          "itself.");
                return -EINVAL;
        }
        return 1;
}

/* Logs. */
static int find_directories(char ***ret) {
        const char *environment = getenv("TLOB_CONFIG_DIRECTORIES");
        _cleanup_free_ char *reason = NULL;
        int r;

        if (!environment) {
                r = config_directories_of(arg_scope, ret, &reason);
                return r < 0 ? log_error_errno(r, "%s.", reason ?: "Out of memory") : 0;
        }
        r = config_directories_parse(environment, ret);
        if (r < 0)
                return log_error_errno(r,
                                       "TLOB_CONFIG_DIRECTORIES must be two to %i absolute paths, "
                                       "with colons between them.",
                                       CONFIG_DIRECTORIES_MAX);
        return 0;
}

/* Until it is to end, and then with its exit status; or with a negative errno. Logs. */
static int serve(Manager *manager, Bus **bus) {
        int r;

        r = manager_start_loop(manager);
        if (r >= 0)
                r = bus_open(manager, bus);
        if (r >= 0)
                r = manager_start(manager, bus_get_asking_connection(*bus));
        if (r < 0)
                return r;

        r = sd_event_loop(manager_get_event(manager));
        if (r < 0)
                return log_error_errno(r, "The event loop failed: %m");
        if (r > 0 && r != MANAGER_START_ANEW)
                return log_error_errno(ECONNRESET, "The connection to the bus is lost.");
        return r;
}

static int run(void) {
        _cleanup_(strings_freep) char **directories = NULL;
        _cleanup_(manager_freep) Manager *manager = NULL;
        _cleanup_(bus_freep) Bus *bus = NULL;
        int r;

        r = find_directories(&directories);
        if (r < 0)
                return r;
        r = manager_new(arg_scope == RUNTIME_SCOPE_USER ? user_backends : backends,
                        (const char *const *) directories, &manager);
        if (r < 0)
                return log_oom();
        manager_set_scope(manager, arg_scope);
        manager_set_version(manager, VERSION);
        manager_keep_in(manager, arg_keep_in);
        r = serve(manager, &bus);
        bus_end_lending(bus);
        if (manager_leave(manager, r < 0)) {
                bus = bus_free(bus);
                _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
        }
        manager_stop(manager);
        return r;
}

/* Somebody's mistake: nothing that is measured is to end by it. */
static void ignore_signals(void) {
        static const int signals[] = { SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM,
                                       SIGPROF, SIGIO,   SIGPWR,  SIGPIPE };

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) signal(signals[i], SIG_IGN);
}

int main(int argc, char *argv[]) {
        int r;

        r = parse_argv(argc, argv);
        if (r <= 0)
                return r < 0 ? 2 : EXIT_SUCCESS;
        log_set_max_level(arg_log_level);
        own_program_note();
        ignore_signals();
        (void) mallopt(M_MMAP_THRESHOLD, MEMORY_SMALL);
        r = run();
        return r < 0 ? EXIT_FAILURE : r;
}
