/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libdebuginfod brings a whole HTTP client with it: it is loaded when it is needed, and may be
 * missing. It keeps what it has fetched in the user's cache. If it is told to stop, it keeps for
 * ten minutes that there is no such file (0.188): so ^C just ends us.
 */

#include "debug-servers.h"

#if HAVE_DEBUGINFOD

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <err.h>
#include <unistd.h>

#include "base/sentence.h"

struct DebugServers {
        debuginfod_client *client;
        __typeof__(debuginfod_begin) *begin;
        __typeof__(debuginfod_end) *end;
        __typeof__(debuginfod_find_debuginfo) *find;
        __typeof__(debuginfod_set_progressfn) *set_progress;
        const char *path; /* of the file whose debug file is on its way */
        long percent;     /* as shown; negative: nothing is */
        bool shows_progress;
        bool has_failed;
};

/* Whose progress it is: what would give it is itself a function that is loaded. */
static DebugServers *fetching;

static bool are_set(void) {
        const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);

        return urls && *urls;
}

static int on_progress(debuginfod_client *client, long done, long of) {
        DebugServers *servers = fetching;
        long percent = of > 0 && done >= 0 && done <= of ? done / (of / 100 + 1) : 0;

        if (servers->shows_progress && percent != servers->percent) {
                _cleanup_free_ char *path = text_escape(servers->path);

                (void) fprintf(stderr, "\rFetching debug symbols of %s: %li%% (^C to end)",
                               path ?: "a file", percent);
                servers->percent = percent;
        }
        return 0;
}

static int load(DebugServers *servers) {
        const struct {
                const char *name;
                void **to;
        } functions[] = {
                { "debuginfod_begin", (void **) &servers->begin },
                { "debuginfod_end", (void **) &servers->end },
                { "debuginfod_find_debuginfo", (void **) &servers->find },
                { "debuginfod_set_progressfn", (void **) &servers->set_progress },
        };
        void *library;

        /* It stays: what it loads in its turn is not made to go. */
        library = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_NODELETE);
        if (!library)
                return -ENOENT;
        for (size_t i = 0; i < ELEMENTSOF(functions); i++) {
                *functions[i].to = dlsym(library, functions[i].name);
                if (!*functions[i].to)
                        return -ENOENT;
        }
        servers->client = servers->begin();
        if (!servers->client)
                return -ENOMEM;
        servers->set_progress(servers->client, on_progress);
        return 0;
}

DebugServers *debug_servers_free(DebugServers *servers) {
        if (!servers)
                return NULL;
        if (servers->client)
                servers->end(servers->client);
        free(servers);
        return NULL;
}

DebugServers *debug_servers_new(void) {
        _cleanup_(debug_servers_freep) DebugServers *servers = NULL;

        if (!are_set())
                return NULL;
        servers = calloc(1, sizeof(*servers));
        if (!servers) {
                warnx("Out of memory: DEBUGINFOD_URLS is ignored");
                return NULL;
        }
        servers->shows_progress = isatty(STDERR_FILENO);
        return TAKE_PTR(servers);
}

/* A descriptor, or a negative errno. */
static int fetch(DebugServers *servers, const ElfFile *elf, char **ret_path) {
        int fd;

        servers->path = elf_file_path(elf);
        servers->percent = -1;
        fetching = servers;
        fd = servers->find(servers->client, (const unsigned char *) elf_file_build_id(elf), 0,
                           ret_path);
        if (servers->percent >= 0)
                (void) fprintf(stderr, "\r\033[K");
        return fd;
}

char *debug_servers_find(const ElfFile *elf, void *userdata) {
        DebugServers *servers = userdata;
        char *path = NULL;
        int fd;

        if (!servers->client && !servers->has_failed && load(servers) < 0) {
                warnx("%s cannot be loaded, so DEBUGINFOD_URLS is ignored", DEBUGINFOD_SONAME);
                servers->has_failed = true;
        }
        if (servers->has_failed)
                return NULL;
        fd = fetch(servers, elf, &path);
        if (fd >= 0) {
                (void) close(fd);
                return path;
        }
        if (fd != -ENOENT) {
                _cleanup_free_ char *name = text_escape(elf_file_path(elf));

                servers->has_failed = true;
                warnx("Failed to fetch debug symbols of %s from the servers in DEBUGINFOD_URLS, "
                      "ignoring: %s",
                      name ?: "a file", strerror(-fd));
        }
        return NULL;
}

const char *debug_servers_advise(const DebugServers *servers) {
        return servers ? ", as DEBUGINFOD_URLS leads to none" : ", or set DEBUGINFOD_URLS";
}

#else

DebugServers *debug_servers_new(void) {
        return NULL;
}

DebugServers *debug_servers_free(DebugServers *servers) {
        return NULL;
}

char *debug_servers_find(const ElfFile *elf, void *userdata) {
        return NULL;
}

const char *debug_servers_advise(const DebugServers *servers) {
        return "";
}

#endif
