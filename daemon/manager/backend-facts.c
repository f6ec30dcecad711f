/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "manager/backend-facts.h"

/* That a kernel has no monitor of its own is no limitation: few have. */
static bool is_limitation(const Backends *b, const BackendAbsence *absence) {
        return !backends_get(b, 0) || absence->error != -ENOENT;
}

const char *backends_get_limitation(const Backends *b, size_t i) {
        const BackendAbsence *absence;
        const BackendOps *ops;

        for (size_t j = 0; (absence = backends_get_absence(b, j)); j++)
                if (is_limitation(b, absence) && i-- == 0)
                        return absence->reason;
        for (size_t j = 0; (ops = backends_get(b, j)); j++) {
                Backend *backend = backends_get_used(b, j);

                if (!backend)
                        continue;
                for (const char *const *p = ops->limitations(backend); *p; p++)
                        if (i-- == 0)
                                return *p;
        }
        return NULL;
}

/* The last resort is what is promised at least. */
const char *backends_get_deadline_mode(const Backends *b) {
        const BackendOps *ops;
        const char *mode = "";

        for (size_t i = 0; (ops = backends_get(b, i)); i++) {
                Backend *backend = backends_get_used(b, i);

                if (backend)
                        mode = ops->deadline_mode(backend);
        }
        return mode;
}

bool backends_are_removing(const Backends *b) {
        const BackendOps *ops;

        for (size_t i = 0; (ops = backends_get(b, i)); i++) {
                Backend *backend = backends_get_used(b, i);

                if (backend && ops->is_removing && ops->is_removing(backend))
                        return true;
        }
        return false;
}

uint64_t backends_get_cost(const Backends *b) {
        const BackendOps *ops;
        uint64_t total = 0;

        for (size_t i = 0; (ops = backends_get(b, i)); i++) {
                Backend *backend = backends_get_used(b, i);

                if (backend && ops->cost)
                        total += ops->cost(backend, BACKEND_NO_INDEX);
        }
        return total;
}

const ProbePrices *backends_get_prices(const Backends *b, const BackendOps *ops) {
        const BackendOps *other;

        for (size_t i = 0; (other = backends_get(b, i)); i++) {
                Backend *backend = backends_get_used(b, i);

                if (other == ops && backend && ops->prices)
                        return ops->prices(backend);
        }
        return NULL;
}

bool backends_take_alarm(const Backends *b) {
        const BackendOps *ops;
        bool any = false;

        for (size_t i = 0; (ops = backends_get(b, i)); i++) {
                Backend *backend = backends_get_used(b, i);

                any |= backend && ops->take_alarm && ops->take_alarm(backend);
        }
        return any;
}
