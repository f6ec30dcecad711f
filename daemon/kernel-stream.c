/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A trace instance of our own, with the monitor's events and the clock that everything else of the daemon
 * goes by. The raw buffers of all CPUs are read when there is something in them, however little.
 *
 * Each CPU has its own buffer, and the two records of a violation are neighbours in it: so events are
 * paired CPU by CPU, and only the violations are put in the order of their times.
 *
 * An instance that is there already was left by a daemon that died. Setting its clock again would
 * empty it: it is taken as it is.
 */

#include "kernel-stream.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/sysinfo.h>
#include <tracefs/tracefs.h>

#include "sentence.h"

#define INSTANCE      "tlobd"
#define PAGE_SIZE_MAX 65536
#define BUFFER_MIN    65536 /* of a CPU */
#define PAGES_AT_ONCE 256   /* of a CPU, before others have their turn */

typedef struct Cpu {
        int fd; /* -EBADF: this CPU has no buffer */
        uint64_t overrun;
        KernelPairing pairing;
} Cpu;

struct KernelStream {
        struct tracefs_instance *instance;
        KernelFormats *formats;
        int epoll_fd;
        Cpu *cpus;
        size_t n_cpus;
        uint64_t damaged;

        /* During kernel_stream_read() */
        Cpu *current;
        KernelEvent *violations;
        size_t n_violations;
        size_t n_allocated;
        int error;
};

KernelStream *kernel_stream_free(KernelStream *stream) {
        if (!stream)
                return NULL;
        for (size_t i = 0; i < stream->n_cpus; i++)
                safe_close(stream->cpus[i].fd);
        free(stream->cpus);
        safe_close(stream->epoll_fd);
        free(stream->violations);
        kernel_formats_free(stream->formats);
        if (stream->instance) {
                (void) tracefs_instance_destroy(stream->instance);
                tracefs_instance_free(stream->instance);
        }
        free(stream);
        return NULL;
}

static int read_formats(const KernelTracing *tracing, KernelFormats **ret, char **ret_reason) {
        char *texts[KERNEL_N_EVENTS] = {};
        int r = 0;

        for (KernelEventType type = 0; type < KERNEL_N_EVENTS && r >= 0; type++) {
                char file[64];

                (void) snprintf(file, sizeof(file), "events/rv/%s/format",
                                kernel_event_names[type]);
                r = kernel_tracing_read(tracing, file, &texts[type]);
                if (r < 0)
                        r = sentence_error(r, ret_reason, "Cannot read %s/%s: %s", tracing->path,
                                           file, strerror(-r));
        }
        if (r >= 0)
                r = kernel_formats_new((const char *const *) texts, ret, ret_reason);
        for (size_t i = 0; i < KERNEL_N_EVENTS; i++)
                free(texts[i]);
        return r;
}

/* libtracefs: -1 and, mostly, an errno. */
static int tracefs_error(void) {
        return errno > 0 ? -errno : -EIO;
}

static int write_option(KernelStream *stream, const char *file, const char *value,
                        char **ret_reason) {
        errno = 0;
        if (tracefs_instance_file_write(stream->instance, file, value) >= 0)
                return 0;
        return sentence_error(tracefs_error(), ret_reason,
                              "Cannot set '%s' of the trace instance to '%s': %s", file, value,
                              strerror(-tracefs_error()));
}

static int configure_new(KernelStream *stream, size_t buffer_size, char **ret_reason) {
        size_t size = buffer_size / stream->n_cpus;
        char kilobytes[32];
        int r;

        (void) snprintf(kilobytes, sizeof(kilobytes), "%zu",
                        (size > BUFFER_MIN ? size : BUFFER_MIN) / 1024);
        r = write_option(stream, "trace_clock", "mono", ret_reason);
        if (r >= 0)
                r = write_option(stream, "buffer_size_kb", kilobytes, ret_reason);
        /* Else poll() would wait for half a buffer. Kernels that do not have it wake at once. */
        if (r >= 0 && tracefs_file_exists(stream->instance, "buffer_percent"))
                r = write_option(stream, "buffer_percent", "0", ret_reason);
        return r;
}

/* The detail before the error that it follows: later versions leave it out when nobody listens. */
static int enable_events(KernelStream *stream, char **ret_reason) {
        static const KernelEventType order[] = { KERNEL_EVENT_DETAIL, KERNEL_EVENT_ERROR_ENV,
                                                 KERNEL_EVENT_ERROR };

        for (size_t i = 0; i < ELEMENTSOF(order); i++) {
                const char *name = kernel_event_names[order[i]];

                errno = 0;
                if (tracefs_event_enable(stream->instance, "rv", name) < 0)
                        return sentence_error(tracefs_error(), ret_reason,
                                              "Cannot switch the event rv:%s on: %s", name,
                                              strerror(-tracefs_error()));
        }
        return 0;
}

static int open_cpus(KernelStream *stream) {
        for (size_t i = 0; i < stream->n_cpus; i++) {
                struct epoll_event event = { .events = EPOLLIN, .data.u64 = i };
                char file[64];

                (void) snprintf(file, sizeof(file), "per_cpu/cpu%zu/trace_pipe_raw", i);
                stream->cpus[i].fd = tracefs_instance_file_open(stream->instance, file,
                                                                O_RDONLY | O_NONBLOCK | O_CLOEXEC);
                if (stream->cpus[i].fd < 0) {
                        stream->cpus[i].fd = -EBADF;
                        continue;
                }
                if (epoll_ctl(stream->epoll_fd, EPOLL_CTL_ADD, stream->cpus[i].fd, &event) < 0)
                        return -errno;
        }
        return 0;
}

static int stream_set_up(KernelStream *stream, const KernelTracing *tracing, size_t buffer_size,
                         bool *ret_stale, char **ret_reason) {
        int r;

        stream->n_cpus = (size_t) get_nprocs_conf();
        stream->cpus = calloc(stream->n_cpus, sizeof(*stream->cpus));
        if (!stream->cpus)
                return -ENOMEM;
        for (size_t i = 0; i < stream->n_cpus; i++)
                stream->cpus[i].fd = -EBADF;
        stream->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (stream->epoll_fd < 0)
                return -errno;

        r = read_formats(tracing, &stream->formats, ret_reason);
        if (r < 0)
                return r;
        errno = 0;
        stream->instance = tracefs_instance_create(INSTANCE);
        if (!stream->instance)
                return sentence_error(tracefs_error(), ret_reason,
                                      "Cannot make the trace instance '" INSTANCE "' below %s: %s",
                                      tracing->path, strerror(-tracefs_error()));
        *ret_stale = !tracefs_instance_is_new(stream->instance);
        if (!*ret_stale) {
                r = configure_new(stream, buffer_size, ret_reason);
                if (r < 0)
                        return r;
        }
        r = enable_events(stream, ret_reason);
        return r < 0 ? r : open_cpus(stream);
}

int kernel_stream_new(const KernelTracing *tracing, size_t buffer_size, KernelStream **ret,
                      bool *ret_stale, char **ret_reason) {
        _cleanup_(kernel_stream_freep) KernelStream *stream = NULL;
        int r;

        stream = calloc(1, sizeof(*stream));
        if (!stream)
                return -ENOMEM;
        stream->epoll_fd = -EBADF;
        r = stream_set_up(stream, tracing, buffer_size, ret_stale, ret_reason);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(stream);
        return 0;
}

int kernel_stream_get_fd(KernelStream *stream) {
        return stream->epoll_fd;
}

static void on_event(const KernelEvent *event, void *userdata) {
        KernelStream *stream = userdata;
        KernelEvent violation;

        if (!kernel_pairing_push(&stream->current->pairing, event, &violation))
                return;
        if (stream->n_violations == stream->n_allocated) {
                size_t n = stream->n_allocated > 0 ? 2 * stream->n_allocated : 64;
                KernelEvent *larger = reallocarray(stream->violations, n, sizeof(*larger));

                if (!larger) {
                        stream->error = -ENOMEM;
                        return;
                }
                stream->violations = larger;
                stream->n_allocated = n;
        }
        stream->violations[stream->n_violations++] = violation;
}

/* "overrun: 12" in the statistics of the buffer: events that newer ones have overwritten. */
static void look_for_loss(KernelStream *stream, size_t cpu) {
        _cleanup_free_ char *text = NULL;
        const char *line;
        char file[64];

        (void) snprintf(file, sizeof(file), "per_cpu/cpu%zu/stats", cpu);
        text = tracefs_instance_file_read(stream->instance, file, NULL);
        line = text ? strstr(text, "\noverrun: ") : NULL;
        if (line)
                (void) sscanf(line, "\noverrun: %" SCNu64, &stream->cpus[cpu].overrun);
}

/* A page more, if there is one: returns 1, 0 when the buffer is empty, or a negative errno. */
static int read_page(KernelStream *stream, size_t cpu) {
        static uint8_t page[PAGE_SIZE_MAX];
        KernelPage result;
        ssize_t n;
        int r;

        n = read(stream->cpus[cpu].fd, page, sizeof(page));
        if (n <= 0)
                return n == 0 || errno == EAGAIN || errno == EINTR ? 0 : -errno;

        r = kernel_page_decode(stream->formats, page, (size_t) n, on_event, stream, &result);
        if (r < 0)
                return r;
        if (result.missed)
                look_for_loss(stream, cpu);
        stream->damaged += result.damaged;
        return 1;
}

static int compare_times(const void *a, const void *b) {
        const KernelEvent *x = a, *y = b;

        return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

int kernel_stream_read(KernelStream *stream, KernelEventHandler handler, void *userdata) {
        int r = 0;

        stream->n_violations = 0;
        stream->error = 0;
        for (size_t i = 0; i < stream->n_cpus; i++) {
                stream->current = &stream->cpus[i];
                if (stream->current->fd < 0)
                        continue;
                for (size_t n = 0; n < PAGES_AT_ONCE; n++) {
                        int q = read_page(stream, i);

                        if (q <= 0) {
                                r = q < 0 ? q : r;
                                break;
                        }
                }
        }

        if (stream->n_violations > 1)
                qsort(stream->violations, stream->n_violations, sizeof(*stream->violations),
                      compare_times);
        for (size_t i = 0; i < stream->n_violations; i++)
                handler(&stream->violations[i], userdata);
        if (stream->error < 0)
                return stream->error;
        return r < 0 ? r : (int) stream->n_violations;
}

void kernel_stream_get_counters(KernelStream *stream, KernelStreamCounters *ret) {
        KernelStreamCounters counters = { .damaged = stream->damaged };

        for (size_t i = 0; i < stream->n_cpus; i++) {
                const Cpu *cpu = &stream->cpus[i];

                counters.lost += cpu->overrun;
                counters.unpaired += cpu->pairing.n_unpaired;
                counters.lone += cpu->pairing.n_lone;
                counters.aborted += cpu->pairing.n_aborted;
        }
        *ret = counters;
}
