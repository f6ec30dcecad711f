/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where the links of probes live. The kernel takes a probe away when its link's last user has gone,
 * and waits for a grace period: 50 ms for each descriptor that a dying process had of one, one
 * after the other. A daemon with 1000 probes that was killed took minutes to be gone, and only then
 * could systemd start it again.
 *
 * A link that is pinned in a BPF file system is put aside for a worker of the kernel when its name
 * goes, and all of them wait at once. So the daemon has a file system of that kind for itself. It
 * is mounted nowhere: it exists by its descriptor alone, and the kernel takes it down when the last
 * process ends that has it, however that happens. 1000 probes: the process is gone after 3 ms, and
 * the last probe after 1.2 s (Linux 6.18, two CPUs). When the service manager has a descriptor of
 * it too, all of it is there for the next daemon (kept.h).
 *
 * Where there is no such service manager, the pins can be in a directory of the machine's BPF file
 * system instead (pin-directory.h), which is there as long as nobody removes it.
 */

#include "bpf/pins.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#define TRIES_MAX 3

struct Pins {
        int fd; /* of the root of the file system */
        uint32_t last;
        uint32_t last_inherited;
        bool stays; /* what a successor is to find there */
};

/* A file system that is mounted nowhere: its descriptor, or a negative errno. */
static int make_file_system(void) {
        _cleanup_close_ int context_fd = -EBADF, mount_fd = -EBADF;
        int fd;

        context_fd = fsopen("bpf", FSOPEN_CLOEXEC);
        if (context_fd < 0)
                return -errno;
        if (fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        mount_fd = fsmount(context_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        if (mount_fd < 0)
                return -errno;
        /* systemd stores no O_PATH descriptor, which that one is. */
        fd = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int pins_new(const int *keep_fd, Pins **ret) {
        _cleanup_free_ Pins *pins = NULL;

        pins = calloc(1, sizeof(*pins));
        if (!pins)
                return -ENOMEM;
        pins->fd = keep_fd ? pin_directory_make(*keep_fd) : make_file_system();
        if (pins->fd < 0)
                return pins->fd;
        *ret = TAKE_PTR(pins);
        return 0;
}

void pins_leave(Pins *pins) {
        pins->stays = true;
}

Pins *pins_free(Pins *pins) {
        if (!pins)
                return NULL;

        if (!pins->stays)
                pin_directory_remove(pins->fd);
        safe_close(pins->fd);
        free(pins);
        return NULL;
}

/* Links are numbered, with their group above that; their names begin with this. */
#define LINK            "link_"
#define PIN(group, n)   ((uint64_t) (group) << 32 | (n))
#define PIN_GROUP(pin)  ((uint32_t) ((pin) >> 32))
#define PIN_NUMBER(pin) ((uint32_t) (pin))

static bool begins_with(const char *text, const char *with) {
        return strncmp(text, with, strlen(with)) == 0;
}

/* 0: it is none. */
static uint64_t link_number(const char *name) {
        return begins_with(name, LINK) ? strtoull(name + strlen(LINK), NULL, 10) : 0;
}

/* Calls the visitor for each link. */
static int visit_links(const Pins *pins, void (*visitor)(uint64_t pin, void *userdata),
                       void *userdata) {
        _cleanup_closedir_ DIR *dir = pin_directory_read(pins->fd);
        const struct dirent *entry;

        if (!dir)
                return -errno;
        while ((entry = readdir(dir))) {
                uint64_t pin = link_number(entry->d_name);

                if (pin)
                        visitor(pin, userdata);
        }
        return 0;
}

static void note_last(uint64_t pin, void *userdata) {
        uint32_t *last = userdata;

        if (PIN_NUMBER(pin) > *last)
                *last = PIN_NUMBER(pin);
}

/* Elsewhere, nothing of that name is ours to remove. */
static bool is_bpf_file_system(int fd) {
        struct statfs st;

        return fstatfs(fd, &st) >= 0 && st.f_type == BPF_FS_MAGIC;
}

int pins_inherit(int fd, Pins **ret) {
        _cleanup_free_ Pins *pins = NULL;
        int r;

        if (!is_bpf_file_system(fd))
                return -ESTALE;
        pins = calloc(1, sizeof(*pins));
        if (!pins)
                return -ENOMEM;
        pins->fd = fd;
        r = visit_links(pins, note_last, &pins->last);
        if (r < 0)
                return r;
        pins->last_inherited = pins->last;
        *ret = TAKE_PTR(pins);
        return 0;
}

int pins_get_fd(const Pins *pins) {
        return pins->fd;
}

typedef struct PinName {
        char text[32];
} PinName;

static PinName pin_name(uint64_t pin) {
        PinName name;

        (void) snprintf(name.text, sizeof(name.text), LINK "%" PRIu64, pin);
        return name;
}

PinPath pins_path(const Pins *pins, const char *name) {
        return pin_directory_path(pins->fd, name);
}

int pins_add(Pins *pins, int link_fd, uint32_t group, uint64_t *ret_pin) {
        uint64_t pin = PIN(group, pins->last + 1);
        int r;

        r = pins_add_named(pins, pin_name(pin).text, link_fd);
        if (r < 0)
                return r;
        pins->last++;
        *ret_pin = pin;
        return 0;
}

/* A name that stays keeps its probe. The kernel may lack memory for the call, but not for long. */
static void remove_name(const Pins *pins, const char *name) {
        for (unsigned i = 0; i < TRIES_MAX; i++)
                if (unlinkat(pins->fd, name, 0) >= 0 || errno == ENOENT)
                        return;
}

int pins_attach(Pins *pins, const struct bpf_program *program, PinnedLink *ret) {
        ret->link = bpf_program__attach(program);
        if (!ret->link)
                return -errno;
        if (pins)
                (void) pins_add(pins, bpf_link__fd(ret->link), 0, &ret->pin);
        return 0;
}

void pins_remove(const Pins *pins, uint64_t pin) {
        remove_name(pins, pin_name(pin).text);
}

int pins_take(const Pins *pins, uint64_t pin) {
        int fd;

        fd = bpf_obj_get(pins_path(pins, pin_name(pin).text).text);
        pins_remove(pins, pin);
        return fd;
}

bool pins_have_inherited(const Pins *pins) {
        return pins->last_inherited > 0;
}

typedef struct Inherited {
        uint32_t last;
        const uint32_t *group; /* NULL: all of them */
        void (*visitor)(uint64_t pin, void *userdata);
        void *userdata;
} Inherited;

static void visit_if_inherited(uint64_t pin, void *userdata) {
        const Inherited *inherited = userdata;

        if (PIN_NUMBER(pin) <= inherited->last &&
            (!inherited->group || PIN_GROUP(pin) == *inherited->group))
                inherited->visitor(pin, inherited->userdata);
}

static void visit_inherited(const Pins *pins, const uint32_t *group,
                            void (*visitor)(uint64_t pin, void *userdata), void *userdata) {
        Inherited inherited = {
                .last = pins->last_inherited,
                .group = group,
                .visitor = visitor,
                .userdata = userdata,
        };

        (void) visit_links(pins, visit_if_inherited, &inherited);
}

void pins_visit_inherited(const Pins *pins, uint32_t group,
                          void (*visitor)(uint64_t pin, void *userdata), void *userdata) {
        visit_inherited(pins, &group, visitor, userdata);
}

void pins_end_inherited(Pins *pins, void (*visitor)(uint64_t pin, void *userdata), void *userdata) {
        visit_inherited(pins, NULL, visitor, userdata);
        pins->last_inherited = 0;
}

int pins_add_named(const Pins *pins, const char *name, int fd) {
        return bpf_obj_pin(fd, pins_path(pins, name).text);
}

void pins_remove_others(const Pins *pins, const char *kind, const char *keep) {
        _cleanup_closedir_ DIR *dir = pin_directory_read(pins->fd);
        const struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (begins_with(entry->d_name, kind) && !begins_with(entry->d_name, keep))
                        remove_name(pins, entry->d_name);
}
