/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which back end measures a binding, and when back ends come and go: one is made for the first
 * binding that needs it, and goes a second after the last one has left, so that a unit that restarts
 * finds it still there. No name of a back end is compared with anything here: the choice is made by
 * what they can do, and by what the administrator asked for.
 */

#include <time.h>

#include "log.h"
#include "manager.h"
#include "sentence.h"

#define LINGER_USEC 1000000
#define RETRY_NS    UINT64_C(10000000000)

/* What the binding asks for, else what tlobd.conf does. */
static BackendChoice choice_of(const Manager *m, const Binding *binding) {
        return binding->choice != BACKEND_CHOICE_AUTO ? binding->choice : m->config->backend;
}

/* May it go to another back end, that can do what it asks for? */
static bool may_move(const Manager *m, const Binding *binding, const BackendSlot *from) {
        if (choice_of(m, binding) != BACKEND_CHOICE_AUTO)
                return false;
        for (size_t i = 0; i < m->n_slots; i++)
                if (&m->slots[i] != from && !backend_lacks(m->slots[i].ops, backend_needs(binding)))
                        return true;
        return false;
}

/* What a back end says of a binding: it is set up anew, unless that is advice and nobody else can. */
static void take_notice(Manager *m, BackendSlot *slot, const BackendNotice *notice,
                        Binding *binding) {
        if (notice->is_advice && !may_move(m, binding, slot)) {
                (void) log_full_errno(notice->level, 0, "'%s' stays with back end '%s'. %s.",
                                      binding->name, slot->ops->name, notice->text);
                return;
        }
        (void) log_full_errno(notice->level, 0, "'%s' is set up anew. %s.", binding->name,
                              notice->text);
        manager_settle_binding(m, binding);
        bus_emit_binding_changed(m->bus, binding);
}

/* What a back end has to say: logged, and bindings that it can measure no longer are settled anew. */
void manager_take_notices(Manager *m, BackendSlot *slot) {
        BackendNotice notice;

        while (slot->backend && slot->ops->next_notice &&
               slot->ops->next_notice(slot->backend, &notice) > 0) {
                _cleanup_free_ char *text = notice.text;
                Binding *binding = NULL;

                if (notice.index < slot->n_bindings)
                        binding = slot->bindings[notice.index];
                if (binding)
                        take_notice(m, slot, &notice, binding);
                else if (notice.index == BACKEND_NO_INDEX)
                        (void) log_full_errno(notice.level, 0, "%s.", text);
        }
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < m->n_slots; i++)
                if (m->slots[i].source == source) {
                        manager_dispatch(m, &m->slots[i]);
                        manager_take_notices(m, &m->slots[i]);
                }
        return 0;
}

static uint64_t now_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static int slot_make(Manager *m, BackendSlot *slot, char **ret_error) {
        BackendConfig config = {
                .deadline_mode = m->config->deadline_mode,
                .bindings_max = m->config->bindings_max,
                .tasks_max = m->config->tasks_max,
                .ring_buffer_size = m->config->ring_buffer_size,
        };
        Backend *backend;
        int r;

        if (slot->backend)
                return 0;

        slot->bindings = calloc(config.bindings_max, sizeof(*slot->bindings));
        if (!slot->bindings)
                return -ENOMEM;
        slot->n_bindings = config.bindings_max;

        r = slot->ops->new (&config, &backend, ret_error);
        if (r >= 0 && m->event) {
                r = sd_event_add_io(m->event, &slot->source, slot->ops->get_fd(backend), EPOLLIN,
                                    on_readable, m);
                if (r < 0)
                        slot->ops->free(backend);
        }
        if (r < 0) {
                free(slot->bindings);
                slot->bindings = NULL;
                return r;
        }

        slot->backend = backend;
        slot->lost = 0;
        log_debug("Back end '%s' is in use.", slot->ops->name);
        return 0;
}

/* Attempts take seconds: one that failed is not repeated for each binding of a long list. */
static int slot_try(Manager *m, BackendSlot *slot, char **ret_error) {
        int r;

        if (!slot->backend && slot->error < 0 && now_ns() - slot->failed_ns < RETRY_NS)
                return sentence_error(slot->error, ret_error, "%s",
                                      slot->failure ?: strerror(-slot->error));
        r = slot_make(m, slot, ret_error);
        slot->error = r;
        if (r < 0) {
                slot->failed_ns = now_ns();
                (void) free_and_strdup(&slot->failure, *ret_error);
        }
        return r;
}

static bool slot_is_used(const Manager *m, const BackendSlot *slot) {
        for (size_t i = 0; i < slot->n_bindings; i++)
                if (slot->bindings[i])
                        return true;
        return false;
}

static void slot_release(BackendSlot *slot) {
        slot->source = sd_event_source_disable_unref(slot->source);
        slot->backend = slot->ops->free(slot->backend);
        free(slot->bindings);
        slot->bindings = NULL;
        slot->n_bindings = 0;
        log_debug("Back end '%s' is out of use.", slot->ops->name);
}

static int on_linger(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        m->linger = sd_event_source_disable_unref(m->linger);
        for (size_t i = 0; i < m->n_slots; i++)
                if (m->slots[i].backend && !slot_is_used(m, &m->slots[i]))
                        slot_release(&m->slots[i]);
        return 0;
}

void manager_release_backends(Manager *m) {
        if (!m->event || m->linger)
                return;
        for (size_t i = 0; i < m->n_slots; i++)
                if (m->slots[i].backend && !slot_is_used(m, &m->slots[i])) {
                        (void) sd_event_add_time_relative(m->event, &m->linger, CLOCK_MONOTONIC,
                                                          LINGER_USEC, 0, on_linger, m);
                        return;
                }
}

void manager_finish_backends(Manager *m) {
        for (size_t i = 0; i < m->n_slots; i++) {
                _cleanup_free_ char *reason = NULL;

                if (m->slots[i].unfinished && slot_try(m, &m->slots[i], &reason) < 0)
                        log_warning("What a tlobd that died has left in back end '%s' stays there, "
                                    "ignoring: %s",
                                    m->slots[i].ops->name, reason ?: "out of memory");
                m->slots[i].unfinished = false;
        }
        manager_release_backends(m);
}

BackendSlot *manager_slot_of(Manager *m, const Backend *backend) {
        for (size_t i = 0; i < m->n_slots; i++)
                if (m->slots[i].backend == backend)
                        return &m->slots[i];
        return NULL;
}

/* Adds a sentence to those that say why the back ends before were not taken. */
static int add_reason(char **reasons, const char *reason) {
        char *joined;

        joined = *reasons ? sentence_make("%s; %s", *reasons, reason) : strdup(reason);
        if (!joined)
                return -ENOMEM;
        free(*reasons);
        *reasons = joined;
        return 0;
}

/* 0 if the back end can measure the binding; else -EOPNOTSUPP, and why not is added to *reasons. */
static int slot_can(const BackendSlot *slot, const Binding *binding, const ElfFile *elf,
                    char **reasons) {
        const char *lacks = backend_lacks(slot->ops, backend_needs(binding));
        _cleanup_free_ char *reason = NULL;
        int r;

        if (lacks) {
                reason = sentence_make("Back end '%s' cannot %s", slot->ops->name, lacks);
                r = reason ? -EOPNOTSUPP : -ENOMEM;
        } else
                r = slot->ops->can ? slot->ops->can(binding, elf, &reason) : 0;
        if (r >= 0)
                return 0;
        if (add_reason(reasons, reason ?: strerror(-r)) < 0)
                return -ENOMEM;
        return r;
}

static int slot_take(Manager *m, BackendSlot *slot, Binding *binding, const ElfFile *elf,
                     char **reasons) {
        _cleanup_free_ char *reason = NULL;
        uint32_t index;
        int r;

        r = slot_try(m, slot, &reason);
        if (r >= 0)
                r = slot->ops->add(slot->backend, binding, elf, &index, &reason);
        if (r < 0) {
                (void) add_reason(reasons, reason ?: strerror(-r));
                return r;
        }
        slot->bindings[index] = binding;
        binding->backend = slot->backend;
        binding->backend_index = index;
        return 0;
}

/* Why back ends that this build has are not there, unless nobody would look for them. */
static int reasons_of_absent(const Manager *m, char **reasons) {
        for (size_t i = 0; i < m->n_absent; i++)
                if (add_reason(reasons, m->absent[i].reason) < 0)
                        return -ENOMEM;
        return 0;
}

static int no_backend(Manager *m, int error, const char *wanted, const char *reasons,
                      char **ret_error) {
        if (m->n_slots == 0)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "Nothing can be measured on this machine. %s", reasons ?: "");
        if (error < 0)
                return sentence_error(error, ret_error, "%s", reasons ?: strerror(-error));
        for (size_t i = 0; i < m->n_absent; i++)
                if (streq(m->absent[i].ops->name, wanted))
                        return sentence_error(-EOPNOTSUPP, ret_error,
                                              "This machine has no back end '%s': %s", wanted,
                                              m->absent[i].reason);
        return sentence_error(-EOPNOTSUPP, ret_error,
                              "This machine has no back end '%s'; write Backend=auto", wanted);
}

/*
 * Tries the back ends in their order. take: sets the probes too, and goes on to the next when that
 * fails. *ret_reason: why this one.
 */
static int try_backends(Manager *m, Binding *binding, const ElfFile *elf, bool take,
                        BackendSlot **ret, char **ret_reason, char **ret_error) {
        BackendChoice choice = choice_of(m, binding);
        bool is_auto = choice == BACKEND_CHOICE_AUTO;
        const char *wanted = backend_choice_to_string(choice);
        _cleanup_free_ char *reasons = NULL;
        int error = 0, r;

        if (is_auto || m->n_slots == 0) {
                r = reasons_of_absent(m, &reasons);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < m->n_slots; i++) {
                BackendSlot *slot = &m->slots[i];

                if (!is_auto && !streq(slot->ops->name, wanted))
                        continue;
                r = slot_can(slot, binding, elf, &reasons);
                if (r >= 0 && take)
                        r = slot_take(m, slot, binding, elf, &reasons);
                if (r == -ENOMEM)
                        return r;
                if (r < 0) {
                        error = r;
                        continue;
                }
                if (!reasons && add_reason(&reasons, is_auto ? "The first that can measure it"
                                                             : "As configured by Backend=") < 0)
                        return -ENOMEM;
                *ret = slot;
                *ret_reason = TAKE_PTR(reasons);
                return 0;
        }
        return no_backend(m, error, wanted, reasons, ret_error);
}

int manager_choose_backend(Manager *m, Binding *binding, const ElfFile *elf,
                           const char **ret_backend, char **ret_reason, char **ret_error) {
        BackendSlot *slot;
        int r;

        r = try_backends(m, binding, elf, false, &slot, ret_reason, ret_error);
        if (r >= 0)
                *ret_backend = slot->ops->name;
        return r;
}

void manager_complete_backends(Manager *m) {
        for (size_t i = 0; i < m->n_slots && m->n_applying == 0; i++) {
                BackendSlot *slot = &m->slots[i];
                int r;

                if (!slot->backend || !slot->ops->complete)
                        continue;
                r = slot->ops->complete(slot->backend);
                if (r < 0)
                        log_warning_errno(r,
                                          "Back end '%s' will learn of units too late, "
                                          "ignoring: %m",
                                          slot->ops->name);
        }
}

int manager_attach_binding(Manager *m, Binding *binding, const ElfFile *elf, char **ret_error) {
        BackendSlot *slot;
        char *reason;
        int r;

        r = try_backends(m, binding, elf, true, &slot, &reason, ret_error);
        if (r < 0) {
                manager_release_backends(m);
                return r;
        }
        free(binding->backend_reason);
        binding->backend_reason = reason;
        return 0;
}
