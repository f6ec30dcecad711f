/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The lists of bindings at a site and in scopes, as the programs read them. It knows no maps: a
 * site is in memory that is shared with the programs, a scope is a copy.
 *
 * A list is changed while programs walk along it, place by place: a binding that leaves makes a
 * hole, and one that comes fills it. Each place is written at once.
 */

#include "bpf/site-list.h"

#include "base/cleanup.h"

/*
 * The place of a binding in the list, TLOB_SITE_BINDINGS_MAX if it is not there. TLOB_NO_BINDING:
 * the first free place.
 */
static uint32_t list_find(const struct tlob_site *site, uint32_t binding) {
        uint32_t i;

        for (i = 0; i < site->n; i++)
                if (site->binding[i] == binding)
                        return i;
        return binding == TLOB_NO_BINDING ? i : TLOB_SITE_BINDINGS_MAX;
}

static void count_bindings(struct tlob_site *site, uint32_t by) {
        __atomic_store_n(&site->n_bindings, site->n_bindings + by, __ATOMIC_RELEASE);
}

bool site_list_add(struct tlob_site *site, uint32_t binding) {
        uint32_t place = list_find(site, TLOB_NO_BINDING);

        if (place == TLOB_SITE_BINDINGS_MAX)
                return false;
        __atomic_store_n(&site->binding[place], binding, __ATOMIC_RELEASE);
        if (place == site->n)
                __atomic_store_n(&site->n, place + 1, __ATOMIC_RELEASE);
        count_bindings(site, 1);
        return true;
}

bool site_list_remove(struct tlob_site *site, uint32_t binding) {
        uint32_t place = list_find(site, binding);

        if (place == TLOB_SITE_BINDINGS_MAX)
                return false;
        count_bindings(site, (uint32_t) -1);
        __atomic_store_n(&site->binding[place], TLOB_NO_BINDING, __ATOMIC_RELEASE);
        while (site->n > 0 && site->binding[site->n - 1] == TLOB_NO_BINDING)
                __atomic_store_n(&site->n, site->n - 1, __ATOMIC_RELEASE);
        return true;
}

static void count_scoped(struct tlob_site *site, uint32_t unit, uint32_t by) {
        if (unit == TLOB_UNIT_NONE)
                __atomic_store_n(&site->n_unconfined, site->n_unconfined + by, __ATOMIC_RELEASE);
        __atomic_store_n(&site->n_scoped, site->n_scoped + by, __ATOMIC_RELEASE);
}

void site_list_count_scoped(struct tlob_site *site, uint32_t unit) {
        count_scoped(site, unit, 1);
        count_bindings(site, 1);
}

void site_list_uncount_scoped(struct tlob_site *site, uint32_t unit) {
        count_bindings(site, (uint32_t) -1);
        count_scoped(site, unit, (uint32_t) -1);
}

bool scope_add(struct tlob_scope *scope, uint32_t binding) {
        if (scope->n >= TLOB_SCOPE_BINDINGS_MAX)
                return false;
        scope->binding[scope->n++] = binding;
        return true;
}

void scope_remove(struct tlob_scope *scope, uint32_t binding) {
        for (uint32_t i = 0; i < scope->n; i++)
                if (scope->binding[i] == binding) {
                        scope->binding[i] = scope->binding[--scope->n];
                        return;
                }
}

bool site_users_are_apart(const SiteUser *users, size_t n) {
        for (size_t i = 0; i < n; i++) {
                if (users[i].unit == TLOB_UNIT_NONE || users[i].many)
                        return false;
                for (size_t j = 0; j < i; j++)
                        if (users[i].unit == users[j].unit)
                                return false;
        }
        return true;
}

bool site_users_are_of_marks(const SiteUser *users, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!users[i].is_mark)
                        return false;
        return true;
}
