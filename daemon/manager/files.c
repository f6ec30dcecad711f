/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What becomes of bindings whose files did not answer at once: each waits, with the reason, and is
 * settled when the answer is there. So a file system that hangs is only the problem of what is
 * bound on it.
 */

#include "manager/files.h"

#include "log.h"
#include "manager/follow.h"
#include "manager/looks.h"
#include "manager/reload.h"

/* Of a file system that does not answer for so long, people want to know. */
#define FILE_TIMEOUT_USEC UINT64_C(5000000)

/* A file has been looked at, or its file system has not answered for too long. */
static void on_answer(unsigned id, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (binding->measurement.question == id)
                        manager_follow_unit(m, binding);
                if (binding->look.question == id)
                        manager_look_at_unit(m, binding);
        }
        templates_fill(m->templates);
        manager_tell(m, file_known, id);
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Manager *m = userdata;
        int r;

        r = files_dispatch(m->files, on_answer, m);
        if (r < 0)
                log_error_errno(r, "Failed to receive what was read from files: %m");
        if (m->files_are_late && !files_are_late(m->files)) {
                log_info("Files that could not be read in time have now been read.");
                m->files_are_late = false;
        }
        manager_conclude_reload(m);
        return 0;
}

int manager_start_files(Manager *m) {
        int r;

        r = files_new(FILE_TIMEOUT_USEC, &m->files);
        if (r < 0)
                return r;
        return sd_event_add_io(m->event, &m->files_source, files_get_fd(m->files), EPOLLIN,
                               on_readable, m);
}
