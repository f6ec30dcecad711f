/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A trace instance of our own, with the monitor's events and the clock that everything else of the
 * daemon goes by. The raw buffers of all CPUs are read when there is something in them, however
 * little.
 *
 * Each CPU has its own buffer, and the two records of a violation are neighbours in it: so events
 * are paired CPU by CPU, and only the violations are put in the order of their times. Where
 * breakdowns are summed up here, all events are: up to the time at which the first of the buffers
 * was seen to be empty, because another CPU may have said something since.
 *
 * An instance that is there already was left by a daemon that died. Setting its clock again would
 * empty it: it is taken as it is.
 */

#include "kernel/stream.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/sysinfo.h>
#include <tracefs/tracefs.h>

#include "base/clock.h"
#include "base/sentence.h"
#include "kernel/window.h"

#define INSTANCE       "tlobd"
#define CLOCK          "mono"
#define PAGE_SIZE_MAX  65536
#define BUFFER_MIN     65536 /* of a CPU */
#define PAGES_AT_ONCE  256   /* of a CPU, before others have their turn */
#define PASSES_MAX     4
#define CHANGES_WANTED "state != \"stopped\" || event == \"start\""

typedef struct Cpu {
        int fd;        /* -EBADF: there is no such CPU */
        bool is_heard; /* in epoll_fd */
        uint64_t overrun;
        uint64_t last_ns; /* the last event that was read */
        KernelPairing pairing;
} Cpu;

struct KernelStream {
        struct tracefs_instance *instance;
        KernelFormats *formats;
        KernelWindows *windows; /* NULL: the monitor says breakdowns itself */
        int epoll_fd;
        Cpu *cpus;
        size_t n_cpus;
        uint64_t damaged;
        uint64_t cut; /* violations without a breakdown, for want of events */

        /* During kernel_stream_read() */
        Cpu *current;
        KernelEvent *events; /* violations; with windows: all events, also between two calls */
        size_t n_events;
        size_t n_allocated;
        bool missed;
        int error;
};

KernelStream *kernel_stream_free(KernelStream *stream) {
        if (!stream)
                return NULL;
        for (size_t i = 0; i < stream->n_cpus; i++)
                safe_close(stream->cpus[i].fd);
        free(stream->cpus);
        safe_close(stream->epoll_fd);
        free(stream->events);
        kernel_windows_free(stream->windows);
        kernel_formats_free(stream->formats);
        if (stream->instance) {
                (void) tracefs_instance_destroy(stream->instance);
                tracefs_instance_free(stream->instance);
        }
        free(stream);
        return NULL;
}

/* The detail before the error that it follows: later versions leave it out when nobody listens. */
static const KernelEventType said_order[] = { KERNEL_EVENT_DETAIL, KERNEL_EVENT_ERROR_ENV,
                                              KERNEL_EVENT_ERROR };
static const KernelEventType summed_order[] = { KERNEL_EVENT_CHANGE, KERNEL_EVENT_ERROR_ENV,
                                                KERNEL_EVENT_ERROR };
#define ORDER_SIZE 3

static const KernelEventType *order_of(const KernelStream *stream) {
        return stream->windows ? summed_order : said_order;
}

static int read_formats(KernelStream *stream, const KernelTracing *tracing, char **ret_reason) {
        const KernelEventType *order = order_of(stream);
        char *texts[KERNEL_N_EVENTS] = {};
        int r = 0;

        for (size_t i = 0; i < ORDER_SIZE && r >= 0; i++) {
                char file[64];

                (void) snprintf(file, sizeof(file), "events/rv/%s/format",
                                kernel_event_names[order[i]]);
                r = kernel_tracing_read(tracing, file, &texts[order[i]]);
                if (r < 0)
                        r = sentence_error(r, ret_reason, "Cannot read %s/%s: %s", tracing->path,
                                           file, strerror(-r));
        }
        if (r >= 0)
                r = kernel_formats_new((const char *const *) texts, &stream->formats, ret_reason);
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

/* The clock comes last: see is_configured(). */
static int configure_new(KernelStream *stream, size_t buffer_size, char **ret_reason) {
        size_t size = buffer_size / stream->n_cpus;
        char kilobytes[32];
        int r;

        (void) snprintf(kilobytes, sizeof(kilobytes), "%zu",
                        (size > BUFFER_MIN ? size : BUFFER_MIN) / 1024);
        r = write_option(stream, "buffer_size_kb", kilobytes, ret_reason);
        /* Else poll() would wait for half a buffer. Kernels that do not have it wake at once. */
        if (r >= 0 && tracefs_file_exists(stream->instance, "buffer_percent"))
                r = write_option(stream, "buffer_percent", "0", ret_reason);
        return r < 0 ? r : write_option(stream, "trace_clock", CLOCK, ret_reason);
}

/* Of a daemon that has ended, perhaps in the middle of configure_new(). */
static bool is_configured(const KernelStream *stream) {
        _cleanup_free_ char *clock = tracefs_get_clock(stream->instance);

        return !clock || streq(clock, CLOCK);
}

static int enable_events(KernelStream *stream, char **ret_reason) {
        const KernelEventType *order = order_of(stream);
        int r;

        /* Whoever resets all instances of the machine leaves them so. */
        r = tracefs_file_exists(stream->instance, "tracing_on")
                    ? write_option(stream, "tracing_on", "1", ret_reason)
                    : 0;
        if (r < 0)
                return r;
        /* Tasks between two windows would fill the buffer. Should it not be taken: so they do. */
        if (stream->windows)
                (void) tracefs_instance_file_write(stream->instance, "events/rv/event_tlob/filter",
                                                   CHANGES_WANTED);
        for (size_t i = 0; i < ORDER_SIZE; i++) {
                const char *name = kernel_event_names[order[i]];

                errno = 0;
                if (tracefs_event_enable(stream->instance, "rv", name) < 0)
                        return sentence_error(tracefs_error(), ret_reason,
                                              "Cannot switch the event rv:%s on: %s", name,
                                              strerror(-tracefs_error()));
        }
        return 0;
}

/*
 * A CPU that was never online while there was the instance has no buffer, of which its file tells
 * whoever polls, for ever. It is read with the others, and heard once it has one.
 */
static int hear_cpu(const KernelStream *stream, Cpu *cpu, bool has_buffer) {
        struct epoll_event event = { .events = EPOLLIN };

        if (cpu->is_heard == has_buffer)
                return 0;
        if (epoll_ctl(stream->epoll_fd, has_buffer ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, cpu->fd,
                      &event) < 0)
                return -errno;
        cpu->is_heard = has_buffer;
        return 0;
}

static int open_cpus(KernelStream *stream) {
        for (size_t i = 0; i < stream->n_cpus; i++) {
                Cpu *cpu = &stream->cpus[i];
                char file[64];
                int r;

                (void) snprintf(file, sizeof(file), "per_cpu/cpu%zu/trace_pipe_raw", i);
                cpu->fd = tracefs_instance_file_open(stream->instance, file,
                                                     O_RDONLY | O_NONBLOCK | O_CLOEXEC);
                if (cpu->fd < 0) {
                        cpu->fd = -EBADF;
                        continue;
                }
                r = hear_cpu(stream, cpu, true);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int stream_set_up(KernelStream *stream, const KernelTracing *tracing, unsigned flags,
                         size_t buffer_size, bool *ret_stale, char **ret_reason) {
        int r;

        stream->n_cpus = (size_t) get_nprocs_conf();
        stream->cpus = calloc(stream->n_cpus, sizeof(*stream->cpus));
        if (!stream->cpus)
                return -ENOMEM;
        for (size_t i = 0; i < stream->n_cpus; i++) {
                stream->cpus[i].fd = -EBADF;
                stream->cpus[i].pairing.believes_stops = flags & KERNEL_STREAM_STOPS;
        }
        stream->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (stream->epoll_fd < 0)
                return -errno;

        r = flags & KERNEL_STREAM_SUMS ? kernel_windows_new(&stream->windows) : 0;
        if (r >= 0)
                r = read_formats(stream, tracing, ret_reason);
        if (r < 0)
                return r;
        errno = 0;
        stream->instance = tracefs_instance_create(INSTANCE);
        if (!stream->instance)
                return sentence_error(tracefs_error(), ret_reason,
                                      "Cannot make the trace instance '" INSTANCE "' below %s: %s",
                                      tracing->path, strerror(-tracefs_error()));
        *ret_stale = !tracefs_instance_is_new(stream->instance);
        if (!*ret_stale || !is_configured(stream)) {
                r = configure_new(stream, buffer_size, ret_reason);
                if (r < 0)
                        return r;
        }
        r = enable_events(stream, ret_reason);
        return r < 0 ? r : open_cpus(stream);
}

int kernel_stream_new(const KernelTracing *tracing, unsigned flags, size_t buffer_size,
                      KernelStream **ret, bool *ret_stale, char **ret_reason) {
        _cleanup_(kernel_stream_freep) KernelStream *stream = NULL;
        int r;

        stream = calloc(1, sizeof(*stream));
        if (!stream)
                return -ENOMEM;
        stream->epoll_fd = -EBADF;
        r = stream_set_up(stream, tracing, flags, buffer_size, ret_stale, ret_reason);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(stream);
        return 0;
}

int kernel_stream_get_fd(KernelStream *stream) {
        return stream->epoll_fd;
}

static void keep(KernelStream *stream, const KernelEvent *event) {
        if (stream->n_events == stream->n_allocated) {
                size_t n = stream->n_allocated > 0 ? 2 * stream->n_allocated : 64;
                KernelEvent *larger = reallocarray(stream->events, n, sizeof(*larger));

                if (!larger) {
                        stream->error = -ENOMEM;
                        return;
                }
                stream->events = larger;
                stream->n_allocated = n;
        }
        stream->events[stream->n_events++] = *event;
}

static void on_event(const KernelEvent *event, void *userdata) {
        KernelStream *stream = userdata;
        KernelEvent violation;

        if (!stream->windows) {
                if (kernel_pairing_push(&stream->current->pairing, event, &violation))
                        keep(stream, &violation);
                return;
        }
        if (event->type == KERNEL_EVENT_MISSED) {
                stream->missed = true;
                return;
        }
        stream->current->last_ns = event->time_ns;
        keep(stream, event);
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
        if (n < 0 && errno == ENODEV)
                return hear_cpu(stream, &stream->cpus[cpu], false);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
                return -errno;
        r = hear_cpu(stream, &stream->cpus[cpu], true);
        if (n <= 0 || r < 0)
                return r;

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

/* Returns 1 when the buffer is empty now, 0 if there may be more, or a negative errno. */
static int read_cpu(KernelStream *stream, size_t cpu) {
        stream->current = &stream->cpus[cpu];
        if (stream->current->fd < 0)
                return 1;
        for (size_t n = 0; n < PAGES_AT_ONCE; n++) {
                int r = read_page(stream, cpu);

                if (r <= 0)
                        return r < 0 ? r : 1;
        }
        return 0;
}

/* Reads what there is. *ret_horizon: there is nothing older than that in any buffer any more. */
static int read_cpus(KernelStream *stream, uint64_t *ret_horizon) {
        uint64_t horizon = UINT64_MAX;
        int r = 0;

        for (size_t i = 0; i < stream->n_cpus; i++) {
                uint64_t before = now_ns();
                int q = read_cpu(stream, i);

                if (q == 0)
                        before = stream->cpus[i].last_ns;
                if (before < horizon)
                        horizon = before;
                r = q < 0 ? q : r;
        }
        if (stream->n_events > 1)
                qsort(stream->events, stream->n_events, sizeof(*stream->events), compare_times);
        *ret_horizon = horizon;
        return stream->error < 0 ? stream->error : r;
}

/* Sums up all events before the horizon. Returns how many violations were among them. */
static int sum_up(KernelStream *stream, uint64_t horizon, KernelEventHandler handler,
                  void *userdata) {
        KernelEvent violation;
        size_t i;
        int n = 0;

        for (i = 0; i < stream->n_events; i++) {
                if (stream->events[i].time_ns >= horizon && !stream->missed)
                        break;
                if (!kernel_windows_push(stream->windows, &stream->events[i], &violation))
                        continue;
                /* What was missed may have been of this window. */
                if (stream->missed) {
                        stream->cut++;
                        continue;
                }
                handler(&violation, userdata);
                n++;
        }
        if (stream->missed)
                kernel_windows_cut(stream->windows);
        stream->missed = false;
        stream->n_events -= i;
        if (stream->n_events > 0)
                memmove(stream->events, stream->events + i,
                        stream->n_events * sizeof(*stream->events));
        return n;
}

static int read_summed(KernelStream *stream, KernelEventHandler handler, void *userdata) {
        int n = 0, r = 0;

        for (unsigned i = 0; i < PASSES_MAX && r >= 0 && (i == 0 || stream->n_events > 0); i++) {
                uint64_t horizon;

                r = read_cpus(stream, &horizon);
                n += sum_up(stream, horizon, handler, userdata);
        }
        return r < 0 ? r : n;
}

int kernel_stream_read(KernelStream *stream, KernelEventHandler handler, void *userdata) {
        uint64_t horizon;
        int r;

        stream->error = 0;
        if (stream->windows)
                return read_summed(stream, handler, userdata);

        stream->n_events = 0;
        r = read_cpus(stream, &horizon);
        for (size_t i = 0; i < stream->n_events; i++)
                handler(&stream->events[i], userdata);
        return r < 0 ? r : (int) stream->n_events;
}

bool kernel_stream_is_pending(const KernelStream *stream) {
        return stream->windows && stream->n_events > 0;
}

static void add_windows(const KernelStream *stream, KernelStreamCounters *counters) {
        KernelWindowCounters windows;

        if (!stream->windows)
                return;
        kernel_windows_get_counters(stream->windows, &windows);
        counters->unpaired += windows.unknown;
        counters->aborted += windows.aborted;
        counters->cut += windows.cut + stream->cut;
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
        add_windows(stream, &counters);
        *ret = counters;
}
