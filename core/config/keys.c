/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The keys of [Daemon] in tlobd.conf: one table with their parsers, limits and defaults. A key that
 * is reset takes the text of its default through the same parser, so that the table is the only
 * place that knows it; a test compares it with the installed tlobd.conf.
 *
 * The limits keep a slip of the finger from taking all memory; they are no promise that the machine
 * has as much.
 */

#include <inttypes.h>

#include "base/duration.h"
#include "base/percent.h"
#include "base/sentence.h"
#include "binding/keys.h"
#include "config/config.h"

#define RING_BUFFER_MAX (UINT64_C(1) << 30)

typedef struct ConfigKey {
        const char *name;
        int (*set)(Config *config, const struct ConfigKey *key, const char *value,
                   char **ret_error);
        size_t where; /* offsetof() its field */
        uint64_t min, max;
        const char *initial;
} ConfigKey;

static int set_backend(Config *config, const ConfigKey *key, const char *value, char **ret_error) {
        if (backend_choice_from_string(value, &config->backend) < 0)
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a back end: write auto, kernel or bpf",
                                      key->name, value);
        return 0;
}

static int set_duration(Config *config, const ConfigKey *key, const char *value, char **ret_error) {
        char longest[DURATION_MAX];
        uint64_t ns;
        int r;

        r = duration_parse(value, &ns);
        if (r == -EBADMSG)
                return sentence_error(-EINVAL, ret_error, "%s=%s is not a time: " DURATION_NO_UNIT,
                                      key->name, value);
        if (r >= 0 && (ns < key->min || ns > key->max))
                r = -ERANGE;
        if (r < 0)
                return sentence_error(r, ret_error,
                                      "%s=%s is not a possible time: write one up to %s, such as "
                                      "10s; 0 turns it off",
                                      key->name, value, duration_format(key->max, longest));
        *(uint64_t *) ((char *) config + key->where) = ns;
        return 0;
}

/* A number, with K, M or G behind it if with_suffix. */
static int parse_number(const char *s, bool with_suffix, uint64_t *ret) {
        static const char suffixes[] = "KMG";
        const char *suffix;
        uint64_t v = 0;
        char *end;

        if (*s < '0' || *s > '9')
                return -EINVAL;
        errno = 0;
        v = strtoull(s, &end, 10);
        if (errno != 0)
                return -errno;
        if (with_suffix && *end != '\0' && (suffix = strchr(suffixes, *end))) {
                if (__builtin_mul_overflow(v, UINT64_C(1) << (10 * (suffix - suffixes + 1)), &v))
                        return -ERANGE;
                end++;
        }
        if (*end != '\0')
                return -EINVAL;
        *ret = v;
        return 0;
}

static int number_error(int error, const ConfigKey *key, const char *value, char **ret_error) {
        return sentence_error(error, ret_error,
                              "%s=%s is not a possible number: write one from %" PRIu64
                              " to %" PRIu64,
                              key->name, value, key->min, key->max);
}

static int set_number(Config *config, const ConfigKey *key, const char *value, char **ret_error) {
        uint64_t v = 0;
        int r;

        r = parse_number(value, false, &v);
        if (r >= 0 && (v < key->min || v > key->max))
                r = -ERANGE;
        if (r < 0)
                return number_error(r, key, value, ret_error);
        *(unsigned *) ((char *) config + key->where) = (unsigned) v;
        return 0;
}

static int set_share(Config *config, const ConfigKey *key, const char *value, char **ret_error) {
        unsigned *share = (unsigned *) ((char *) config + key->where);

        if (percent_parse(value, share) < 0)
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a share of a CPU: write one such as %s, or "
                                      "infinity",
                                      key->name, value, key->initial);
        return 0;
}

/* Rounded up to what a BPF ring buffer can have: a power of two, at least a page. */
static int set_ring_size(Config *config, const ConfigKey *key, const char *value,
                         char **ret_error) {
        uint64_t v = 0, size = (uint64_t) sysconf(_SC_PAGESIZE);
        int r;

        r = parse_number(value, true, &v);
        if (r >= 0 && (v < key->min || v > key->max))
                r = -ERANGE;
        if (r < 0)
                return sentence_error(r, ret_error,
                                      "%s=%s is not a possible size: write bytes, or a number with "
                                      "K or M, up to %" PRIu64 "M",
                                      key->name, value, key->max >> 20);
        while (size < v)
                size *= 2;
        *(size_t *) ((char *) config + key->where) = (size_t) size;
        return 0;
}

static int set_deadline_mode(Config *config, const ConfigKey *key, const char *value,
                             char **ret_error) {
        static const struct {
                const char *value;
                DeadlineMode mode;
        } modes[] = {
                { "auto", DEADLINE_UPROBE },
                { "uprobe", DEADLINE_UPROBE },
                { "fentry", DEADLINE_FENTRY },
                { "switch-tick", DEADLINE_SWITCH_TICK },
        };

        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                if (streq(modes[i].value, value)) {
                        config->deadline_mode = modes[i].mode;
                        return 0;
                }
        return sentence_error(
                -EINVAL, ret_error,
                "%s=%s is not a deadline mode: write auto, uprobe, fentry or switch-tick",
                key->name, value);
}

/* X(name, set, field, min, max, default) */
#define CONFIG_KEYS(X)                                                                             \
        X("Backend", set_backend, backend, 0, 0, "auto")                                           \
        X("DeadlineMode", set_deadline_mode, deadline_mode, 0, 0, "auto")                          \
        X("RateLimitIntervalSec", set_duration, rate_limit_interval_ns, 0, 24 * NSEC_PER_HOUR,     \
          "10s")                                                                                   \
        X("RateLimitBurst", set_number, rate_limit_burst, 1, 1000000, "20")                        \
        X("OverallRateLimitBurst", set_number, overall_rate_limit_burst, 1, 1000000, "1000")       \
        X("BindingsMax", set_number, bindings_max, 1, 65536, "1024")                               \
        X("BindingsPerUserMax", set_number, bindings_per_user_max, 0, 65536, "64")                 \
        X("UserInstanceBindingsMax", set_number, user_bindings_max, 0, 65536, "16")                \
        X("SpareInstances", set_number, spare_instances, 0, TLOB_SPARES_MAX, "16")                 \
        X("TasksMax", set_number, tasks_max, 1, 1048576, "8192")                                   \
        X("MarkPagesMax", set_number, mark_pages_max, 0, 4096, "64")                               \
        X("RingBufferSize", set_ring_size, ring_buffer_size, 1, RING_BUFFER_MAX, "1M")             \
        X("ViolationsMax", set_number, violations_max, 0, 65536, "256")                            \
        X("CPULimit", set_share, cpu_limit, 0, 0, "100%")

#define KEY_ROW(name, set, field, min, max, initial)                                               \
        { name, set, offsetof(Config, field), min, max, initial },
#define KEY_NAME(name, set, field, min, max, initial) name,

static const ConfigKey keys[] = { CONFIG_KEYS(KEY_ROW) };

const char *const *config_keys(void) {
        static const char *const names[] = { CONFIG_KEYS(KEY_NAME) NULL };

        return names;
}

int config_set_key(Config *config, const char *name, const char *value, char **ret_error) {
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (streq(keys[i].name, name))
                        return keys[i].set(config, &keys[i],
                                           *value != '\0' ? value : keys[i].initial, ret_error);
        return -ENOENT;
}
