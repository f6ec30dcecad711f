/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_SITE_LIST_H
#define BPF_SITE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/layout.h"

/* A binding at a site: who it is for. */
typedef struct SiteUser {
        uint32_t binding;
        uint32_t unit; /* as in UnitTable */
        bool many;     /* the unit stands for several, which others may stand for too */
        bool is_mark;  /* it measures from the begin of a mark to its end */
} SiteUser;

/* Puts a binding on the list at the site itself. Returns false if there is no room. */
bool site_list_add(struct tlob_site *site, uint32_t binding);

/* Takes it off, and leaves a hole. Returns false if it is not there, but in a scope. */
bool site_list_remove(struct tlob_site *site, uint32_t binding);

/*
 * A binding of that unit (TLOB_UNIT_NONE: of none) is in a scope of the site, or is about to leave
 * it. The scope must be there as long as the site counts it.
 */
void site_list_count_scoped(struct tlob_site *site, uint32_t unit);
void site_list_uncount_scoped(struct tlob_site *site, uint32_t unit);

/* Puts a binding into a scope. Returns false if there is no room. */
bool scope_add(struct tlob_scope *scope, uint32_t binding);

/* Takes it out, if it is there. */
void scope_remove(struct tlob_scope *scope, uint32_t binding);

/* True if no two of n users could be for one task. */
bool site_users_are_apart(const SiteUser *users, size_t n);

/* True if all of them measure marks. */
bool site_users_are_of_marks(const SiteUser *users, size_t n);

#endif
