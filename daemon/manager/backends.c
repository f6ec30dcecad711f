/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * When back ends come and go: one is made for the first binding that needs it, and goes a second
 * after the last one has left, so that a unit that restarts finds it still there. And how they are
 * heard: some milliseconds' worth at a time from the event loop, or all at once when something must
 * not be believed before. What becomes of what they tell is for others to decide, and so is which
 * binding goes where.
 */

#include "manager/backends.h"

#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/sentence.h"
#include "log.h"

#define BACKENDS_MAX 4
#define LINGER_USEC  5000000 /* what is started again gets its probes without loading them again */
#define AGAIN_USEC   100000
#define RETRY_NS     UINT64_C(10000000000)

/* A back end that works here, made when the first binding needs it. */
typedef struct Slot {
        Backends *backends;
        const BackendOps *ops;
        Backend *backend; /* NULL: not in use */
        sd_event_source *source;
        sd_event_source *again; /* the last attempt to read has failed: time for the next one */
        bool has_failed;        /* and it has been said */
        Binding **bindings;     /* by the back end's index; not owned */
        size_t n_bindings;
        size_t n_used;    /* of these */
        uint64_t idle_ns; /* since when none is */
        uint64_t lost;    /* as last seen */
        bool unfinished;  /* a daemon that died has left something: make it once */
        int error;        /* of the last attempt to make it, and when and why it failed */
        uint64_t failed_ns;
        char *failure;
        int kept_fds[BACKEND_N_KEPT]; /* of the daemon before this one; -EBADF: none */
        bool was_inherited;           /* the back end could have gone on with them */
} Slot;

struct Backends {
        const BackendOps *const *ops;
        const BackendsHandlers *handlers;
        void *userdata;
        sd_event *event;

        Slot slots[BACKENDS_MAX];
        size_t n_slots;
        BackendAbsence absent[BACKENDS_MAX];
        size_t n_absent;

        BackendConfig config;
        ReportLimit limit;
        uint64_t n_lost;
        bool is_finished;        /* all bindings have been in place once */
        sd_event_source *linger; /* those that are out of use go when it fires */
};

int backends_new(const BackendOps *const *ops, const BackendsHandlers *handlers, void *userdata,
                 Backends **ret) {
        Backends *b = calloc(1, sizeof(*b));

        if (!b)
                return -ENOMEM;
        *b = (Backends) { .ops = ops, .handlers = handlers, .userdata = userdata };
        *ret = b;
        return 0;
}

static Slot *slot_of_ops(Backends *b, const BackendOps *ops) {
        for (size_t i = 0; i < b->n_slots; i++)
                if (b->slots[i].ops == ops)
                        return &b->slots[i];
        return NULL;
}

static void slot_forget_kept(Slot *slot) {
        for (size_t i = 0; i < BACKEND_N_KEPT; i++)
                slot->kept_fds[i] = safe_close(slot->kept_fds[i]);
}

static void slot_done(Slot *slot) {
        sd_event_source_disable_unref(slot->again);
        sd_event_source_disable_unref(slot->source);
        if (slot->backend)
                slot->ops->free(slot->backend);
        slot_forget_kept(slot);
        free(slot->bindings);
        free(slot->failure);
        *slot = (Slot) {};
}

void backends_stop(Backends *b) {
        for (size_t i = 0; i < b->n_slots; i++)
                slot_done(&b->slots[i]);
        b->n_slots = 0;
}

void backends_inherit(Backends *b, const BackendOps *ops, const int fds[static BACKEND_N_KEPT]) {
        Slot *slot = slot_of_ops(b, ops);

        for (size_t i = 0; i < BACKEND_N_KEPT; i++)
                if (slot)
                        slot->kept_fds[i] = fds[i];
                else
                        (void) close(fds[i]);
        if (slot)
                slot->unfinished = true;
}

Backends *backends_free(Backends *b) {
        if (!b)
                return NULL;

        backends_stop(b);
        sd_event_source_disable_unref(b->linger);
        for (size_t i = 0; i < b->n_absent; i++)
                free(b->absent[i].reason);
        sd_event_unref(b->event);
        free(b);
        return NULL;
}

static int probe_one(Backends *b, const BackendOps *ops) {
        _cleanup_free_ char *reason = NULL;
        int r;

        r = ops->probe(&reason);
        if (r >= 0) {
                b->slots[b->n_slots++] = (Slot) {
                        .backends = b,
                        .ops = ops,
                        .unfinished = r > 0,
                        .kept_fds = { -EBADF, -EBADF },
                };
                return 0;
        }
        if (!reason)
                reason = strdup(strerror(-r));
        if (!reason)
                return -ENOMEM;
        b->absent[b->n_absent++] = (BackendAbsence) {
                .ops = ops,
                .error = r,
                .reason = TAKE_PTR(reason),
        };
        return 0;
}

int backends_probe(Backends *b) {
        for (size_t i = 0; i < BACKENDS_MAX && b->ops[i]; i++) {
                int r = probe_one(b, b->ops[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

void backends_attach_event(Backends *b, sd_event *event) {
        b->event = sd_event_ref(event);
}

static Binding *slot_binding(const Slot *slot, uint32_t index) {
        return index < slot->n_bindings ? slot->bindings[index] : NULL;
}

/* Of one that is not there any more, nobody wants to hear. */
static void on_report(const Report *report, void *userdata) {
        Slot *slot = userdata;
        Binding *binding = slot_binding(slot, report->backend_index);

        if (binding)
                slot->backends->handlers->report(report, slot->backend, binding,
                                                 slot->backends->userdata);
}

static uint64_t *kept_lost(const Slot *slot) {
        return slot->ops->kept_lost ? slot->ops->kept_lost(slot->backend) : NULL;
}

/* Told first, noted then: who is killed in between has the next daemon tell it again. */
static void check_lost(Slot *slot) {
        uint64_t lost = slot->ops->lost(slot->backend), n = lost - slot->lost;
        uint64_t *kept = kept_lost(slot);

        if (n == 0)
                return;
        slot->lost = lost;
        slot->backends->n_lost += n;
        slot->backends->handlers->lost(n, slot->backends->userdata);
        if (kept)
                *kept = lost;
}

/* The daemon before this one has told these. */
static void inherit_lost(Slot *slot) {
        const uint64_t *kept = kept_lost(slot);
        uint64_t lost = slot->ops->lost(slot->backend);

        slot->lost = kept ? *kept : 0;
        if (slot->lost > lost)
                slot->lost = lost;
        slot->backends->n_lost += slot->lost;
}

static uint64_t *kept_unwritten(const Slot *slot) {
        return slot->ops->kept_unwritten ? slot->ops->kept_unwritten(slot->backend) : NULL;
}

static void inherit_unwritten(Slot *slot) {
        uint64_t *kept = kept_unwritten(slot), n = kept ? *kept : 0;

        if (n > 0)
                slot->backends->handlers->unwritten(n, slot->backends->userdata);
}

void backends_note_unwritten(Backends *b, uint64_t n) {
        for (size_t i = 0; i < b->n_slots; i++) {
                uint64_t *kept = b->slots[i].backend ? kept_unwritten(&b->slots[i]) : NULL;

                if (kept)
                        *kept = n;
        }
}

/* It is said once, however often it fails. */
static int dispatch(Slot *slot, int (*operation)(Backend *backend, BackendReportHandler handler,
                                                 void *userdata)) {
        int r;

        r = operation(slot->backend, on_report, slot);
        if (r < 0 && !slot->has_failed)
                log_error_errno(r, "Failed to read the reports of back end '%s', trying again: %m",
                                slot->ops->name);
        slot->has_failed = r < 0;
        check_lost(slot);
        return r;
}

/*
 * What a daemon that died has left is heard when all bindings are in their place again: a report of
 * one that is not there yet would be nobody's.
 */
static bool must_wait(const Slot *slot) {
        return slot->unfinished && !slot->backends->is_finished;
}

void backends_flush(Backends *b, const Backend *backend) {
        for (size_t i = 0; i < b->n_slots; i++) {
                Slot *slot = &b->slots[i];

                if (slot->backend && !must_wait(slot) && (!backend || slot->backend == backend))
                        (void) dispatch(slot, slot->ops->flush ?: slot->ops->dispatch);
        }
}

/* What it says of no binding is for the log. */
static void take_notices(Slot *slot) {
        const Backends *b = slot->backends;
        BackendNotice notice;

        while (slot->backend && slot->ops->next_notice &&
               slot->ops->next_notice(slot->backend, &notice) > 0) {
                _cleanup_free_ char *text = notice.text;
                Binding *binding = slot_binding(slot, notice.index);

                if (binding)
                        b->handlers->notice(&notice, slot->ops, binding, b->userdata);
                else if (notice.index == BACKEND_NO_INDEX)
                        (void) log_full_errno(notice.level, 0, "%s.", text);
        }
}

void backends_take_notices(Backends *b) {
        for (size_t i = 0; i < b->n_slots; i++)
                take_notices(&b->slots[i]);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Slot *slot = userdata;

        slot->again = sd_event_source_disable_unref(slot->again);
        return sd_event_source_set_enabled(slot->source, SD_EVENT_ON);
}

/* What cannot be read now stays readable: nobody is to ask for it all the time. */
static void try_again_later(Slot *slot) {
        if (sd_event_add_time_relative(slot->backends->event, &slot->again, CLOCK_MONOTONIC,
                                       AGAIN_USEC, 0, on_again, slot) >= 0)
                (void) sd_event_source_set_enabled(slot->source, SD_EVENT_OFF);
}

/*
 * Signals come before this, by their priority. Others have their turn after each of ours: nobody
 * can keep anybody waiting for longer than one turn takes.
 */
static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Slot *slot = userdata;
        Backends *b = slot->backends;

        if (dispatch(slot, slot->ops->dispatch) < 0)
                try_again_later(slot);
        take_notices(slot);
        b->handlers->event_done(b->userdata);
        return 0;
}

static int watch(Slot *slot) {
        int r;

        r = sd_event_add_io(slot->backends->event, &slot->source, slot->ops->get_fd(slot->backend),
                            EPOLLIN, on_readable, slot);
        if (r >= 0 && must_wait(slot))
                r = sd_event_source_set_enabled(slot->source, SD_EVENT_OFF);
        return r;
}

static void slot_limit_reports(Slot *slot) {
        if (slot->backend && slot->ops->set_report_limit)
                slot->ops->set_report_limit(slot->backend, &slot->backends->limit);
}

static void tell_kept(const Slot *slot, const int *fds) {
        if (slot->ops->keep && slot->backends->handlers->kept)
                slot->backends->handlers->kept(slot->ops, fds, slot->backends->userdata);
}

/* Its back end is out of use. */
static void slot_clear(Slot *slot) {
        slot->again = sd_event_source_disable_unref(slot->again);
        slot->source = sd_event_source_disable_unref(slot->source);
        if (slot->backend) {
                tell_kept(slot, NULL);
                slot->backend = slot->ops->free(slot->backend);
        }
        free(slot->bindings);
        slot->bindings = NULL;
        slot->n_bindings = 0;
}

/* Of the tlobd before, which has left something. */
static void log_inherited(const Slot *slot, bool goes_on) {
        const BackendOps *ops = slot->ops;

        if (goes_on)
                log_info("Back end '%s' goes on where the tlobd before this one stood.", ops->name);
        else if (ops->has_carried && ops->has_carried(slot->backend))
                log_notice(
                        "Back end '%s' sets all probes anew, as the tlobd before this one was of "
                        "another version, or had other limits; counters go on.",
                        ops->name);
        else
                log_notice(
                        "Back end '%s' sets all probes anew, and counters begin at zero: those of "
                        "the tlobd before this one cannot be used.",
                        ops->name);
}

/* What it goes on with is in the right hands already. */
static void slot_keep(Slot *slot) {
        bool goes_on = slot->kept_fds[0] < 0 && slot->was_inherited;
        int fds[BACKEND_N_KEPT], r;

        if (slot->was_inherited)
                log_inherited(slot, goes_on);
        slot_forget_kept(slot);
        slot->was_inherited = false;
        slot->unfinished = slot->unfinished && !slot->backends->is_finished;
        if (goes_on || !slot->ops->keep)
                return;
        r = slot->ops->keep(slot->backend, fds);
        tell_kept(slot, r < 0 ? NULL : fds);
        if (r < 0 && slot->backends->config.keep_fd)
                log_warning_errno(r, "Failed to keep anything for the next tlobd, ignoring: %m");
}

static int slot_make(Slot *slot, char **ret_error) {
        const Backends *b = slot->backends;
        BackendConfig config = b->config;
        int r;

        if (slot->backend)
                return 0;
        slot->bindings = calloc(b->config.bindings_max, sizeof(Binding *));
        if (!slot->bindings)
                return -ENOMEM;
        slot->n_bindings = b->config.bindings_max;

        config.kept_fds = slot->kept_fds;
        slot->was_inherited = slot->kept_fds[0] >= 0;
        /* It takes seconds, on a slow machine a minute; the watchdog may have waited already. */
        (void) sd_notify(false, "WATCHDOG=1");
        r = slot->ops->new(&config, &slot->backend, ret_error);
        if (r >= 0 && b->event)
                r = watch(slot);
        if (r < 0) {
                slot_clear(slot);
                return r;
        }

        inherit_lost(slot);
        inherit_unwritten(slot);
        slot_limit_reports(slot);
        slot_keep(slot);
        slot->idle_ns = now_ns();
        log_debug("Back end '%s' is in use.", slot->ops->name);
        return 0;
}

/* Attempts take seconds: one that failed is not repeated for each binding of a long list. */
static int slot_try_to_make(Slot *slot, char **ret_error) {
        int r;

        if (!slot->backend && slot->error < 0 && now_ns() - slot->failed_ns < RETRY_NS)
                return sentence_error(slot->error, ret_error, "%s",
                                      slot->failure ?: strerror(-slot->error));
        r = slot_make(slot, ret_error);
        slot->error = r;
        if (r < 0) {
                slot->failed_ns = now_ns();
                (void) free_and_strdup(&slot->failure, *ret_error);
        }
        return r;
}

int backends_make(Backends *b, const BackendOps *ops, Backend **ret, char **ret_error) {
        Slot *slot = slot_of_ops(b, ops);
        int r;

        r = slot ? slot_try_to_make(slot, ret_error) : -EOPNOTSUPP;
        if (r < 0)
                return r;
        *ret = slot->backend;
        return 0;
}

void backends_put(Backends *b, Binding *binding) {
        Slot *slot = slot_of_ops(b, binding->measurement.backend->ops);

        if (!slot->bindings[binding->measurement.index])
                slot->n_used++;
        slot->bindings[binding->measurement.index] = binding;
}

void backends_take(Backends *b, const Binding *binding) {
        Slot *slot = slot_of_ops(b, binding->measurement.backend->ops);

        slot->bindings[binding->measurement.index] = NULL;
        if (--slot->n_used == 0)
                slot->idle_ns = now_ns();
}

bool backends_have(const Backends *b, bool (*applies)(const Binding *binding, const void *userdata),
                   const void *userdata) {
        for (size_t i = 0; i < b->n_slots; i++) {
                const Slot *slot = &b->slots[i];

                for (size_t j = 0; j < slot->n_bindings; j++)
                        if (slot->bindings[j] && applies(slot->bindings[j], userdata))
                                return true;
        }
        return false;
}

static bool slot_is_full(const Slot *slot) {
        return slot->backend && slot->n_used >= slot->n_bindings;
}

bool backends_are_full(const Backends *b) {
        for (size_t i = 0; i < b->n_slots; i++)
                if (!slot_is_full(&b->slots[i]))
                        return false;
        return b->n_slots > 0;
}

static bool slot_is_idle(const Slot *slot) {
        return slot->backend && slot->n_used == 0;
}

static int on_linger(sd_event_source *source, uint64_t usec, void *userdata) {
        Backends *b = userdata;

        b->linger = sd_event_source_disable_unref(b->linger);
        for (size_t i = 0; i < b->n_slots; i++) {
                Slot *slot = &b->slots[i];

                /* It may have been in use meanwhile. */
                if (!slot_is_idle(slot) || now_ns() - slot->idle_ns < LINGER_USEC * NSEC_PER_USEC)
                        continue;
                slot_clear(slot);
                log_debug("Back end '%s' is no longer in use.", slot->ops->name);
        }
        backends_release(b);
        return 0;
}

void backends_clear(Backends *b, const BackendOps *ops) {
        slot_clear(slot_of_ops(b, ops));
}

void backends_release(Backends *b) {
        if (!b->event || b->linger)
                return;
        for (size_t i = 0; i < b->n_slots; i++)
                if (slot_is_idle(&b->slots[i])) {
                        (void) sd_event_add_time_relative(b->event, &b->linger, CLOCK_MONOTONIC,
                                                          LINGER_USEC, 0, on_linger, b);
                        return;
                }
}

bool backends_have_left(const Backends *b) {
        for (size_t i = 0; i < b->n_slots; i++)
                if (b->slots[i].unfinished)
                        return true;
        return false;
}

/* Nobody would look at what it costs. */
static void slot_give_up_kept(Slot *slot, const char *reason) {
        log_warning("Back end '%s' cannot take over what an earlier tlobd left: %s",
                    slot->ops->name, reason ?: "out of memory");
        slot_forget_kept(slot);
        slot->was_inherited = false;
        tell_kept(slot, NULL);
}

bool backends_finish(Backends *b) {
        bool any = false;

        b->is_finished = true;
        for (size_t i = 0; i < b->n_slots; i++) {
                _cleanup_free_ char *reason = NULL;
                Slot *slot = &b->slots[i];

                if (slot->unfinished && slot_try_to_make(slot, &reason) < 0)
                        slot_give_up_kept(slot, reason);
                slot->unfinished = false;
                if (slot->backend && slot->ops->finish)
                        any |= slot->ops->finish(slot->backend) > 0;
                if (slot->backend)
                        check_lost(slot);
                if (slot->source)
                        (void) sd_event_source_set_enabled(slot->source, SD_EVENT_ON);
        }
        backends_release(b);
        return any;
}

void backends_complete(Backends *b) {
        for (size_t i = 0; i < b->n_slots; i++) {
                Slot *slot = &b->slots[i];
                int r;

                if (!slot->backend || !slot->ops->complete)
                        continue;
                r = slot->ops->complete(slot->backend);
                if (r < 0)
                        log_warning_errno(r,
                                          "Back end '%s' notices new units too late, ignoring: %m",
                                          slot->ops->name);
        }
}

void backends_configure(Backends *b, const BackendConfig *config) {
        b->config = *config;
}

void backends_limit_reports(Backends *b, const ReportLimit *limit) {
        b->limit = *limit;
        for (size_t i = 0; i < b->n_slots; i++)
                slot_limit_reports(&b->slots[i]);
}

const BackendOps *backends_get(const Backends *b, size_t i) {
        return i < b->n_slots ? b->slots[i].ops : NULL;
}

Backend *backends_get_used(const Backends *b, size_t i) {
        return i < b->n_slots ? b->slots[i].backend : NULL;
}

const BackendAbsence *backends_get_absence(const Backends *b, size_t i) {
        return i < b->n_absent ? &b->absent[i] : NULL;
}

uint64_t backends_get_lost(const Backends *b) {
        return b->n_lost;
}
