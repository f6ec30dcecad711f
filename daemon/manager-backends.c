/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which back end measures a binding, and when back ends come and go: one is made for the first
 * binding that needs it, and goes a second after the last one has left, so that a unit that restarts
 * finds it still there. No name of a back end is compared with anything here: the choice is made by
 * what they can do, and by what the administrator asked for.
 */

#include "log.h"
#include "manager.h"
#include "sentence.h"

#define LINGER_USEC 1000000

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < m->n_slots; i++)
                if (m->slots[i].source == source)
                        manager_dispatch(m, &m->slots[i]);
        return 0;
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

BackendSlot *manager_slot_of(Manager *m, const Backend *backend) {
        for (size_t i = 0; i < m->n_slots; i++)
                if (m->slots[i].backend == backend)
                        return &m->slots[i];
        return NULL;
}

/* What the binding asks for, else what tlobd.conf does. */
static BackendChoice choice_of(const Manager *m, const Binding *binding) {
        return binding->choice != BACKEND_CHOICE_AUTO ? binding->choice : m->config->backend;
}

int manager_choose_backend(Manager *m, const Binding *binding, bool make, BackendSlot **ret,
                           const char **ret_reason, char **ret_error) {
        BackendChoice choice = choice_of(m, binding);
        const char *wanted = backend_choice_to_string(choice), *lacks = NULL;

        if (m->n_slots == 0)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "Nothing can be measured on this machine. %s",
                                      m->no_backend_reason ?: "");

        for (size_t i = 0; i < m->n_slots; i++) {
                BackendSlot *slot = &m->slots[i];

                if (choice != BACKEND_CHOICE_AUTO && !streq(slot->ops->name, wanted))
                        continue;
                lacks = backend_lacks(slot->ops, backend_needs(binding));
                if (lacks)
                        continue;

                if (make) {
                        int r = slot_make(m, slot, ret_error);

                        if (r < 0)
                                return r;
                }
                *ret = slot;
                *ret_reason = choice == BACKEND_CHOICE_AUTO ? "the first that can measure it"
                                                            : "as configured by Backend=";
                return 0;
        }

        if (lacks)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "No back end that may be used for it here can %s", lacks);
        return sentence_error(-EOPNOTSUPP, ret_error,
                              "This machine has no back end '%s'; write Backend=auto", wanted);
}
