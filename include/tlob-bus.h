/* SPDX-License-Identifier: MIT */
#ifndef TLOB_BUS_H
#define TLOB_BUS_H

/*
 * Names that a program needs to talk to tlobd over D-Bus. The members are documented in
 * org.tlob1.xml, which is installed beside the other D-Bus interface descriptions.
 */

#define TLOB_BUS_NAME           "org.tlob1"
#define TLOB_BUS_PATH           "/org/tlob1"
#define TLOB_BUS_BINDING_PREFIX "/org/tlob1/binding"

#define TLOB_BUS_MANAGER_INTERFACE "org.tlob1.Manager"
#define TLOB_BUS_BINDING_INTERFACE "org.tlob1.Binding"

/* Between the tlobd of users and that of the system: it may change with each version. */
#define TLOB_BUS_LENDER_INTERFACE "org.tlob1.Lender"

/* polkit actions */
#define TLOB_ACTION_MANAGE_BINDINGS "org.tlob1.manage-bindings"
#define TLOB_ACTION_INSPECT         "org.tlob1.inspect"

/* Asked about the tlobd of a user, which cannot enter a password. */
#define TLOB_ACTION_MEASURE_OWN_UNITS "org.tlob1.measure-own-units"

/* Errors. Each comes with one sentence that names the culprit and what to do. */
#define TLOB_ERROR_NO_SUCH_BINDING "org.tlob1.Error.NoSuchBinding"
#define TLOB_ERROR_BINDING_EXISTS  "org.tlob1.Error.BindingExists"
#define TLOB_ERROR_INVALID_BINDING "org.tlob1.Error.InvalidBinding"
#define TLOB_ERROR_NO_SUCH_SYMBOL  "org.tlob1.Error.NoSuchSymbol"
#define TLOB_ERROR_NOT_SUPPORTED   "org.tlob1.Error.NotSupported"
#define TLOB_ERROR_NO_SUCH_WINDOW  "org.tlob1.Error.NoSuchWindow"

/* Flag of AddBinding() and SetBudget(): below /etc, so that it outlives a reboot. */
#define TLOB_FLAG_PERSIST (1ULL << 0)

/* SetBudget(): take every override back, so that the configured budget holds again. */
#define TLOB_BUDGET_CONFIGURED 0ULL

/* In times (budgets too: "infinity"): not known, or not limited. */
#define TLOB_TIME_INFINITY UINT64_MAX

#endif
