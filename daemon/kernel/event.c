/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From the pages of a trace buffer to violations. Fields are found by the "format" files of the
 * running kernel and nothing else: offsets, sizes and order are not the same in all versions.
 *
 * The monitor says error_env_tlob first and detail_env_tlob right after it, on the same CPU,
 * without being interrupted: their records are neighbours, and only both together are a violation.
 * An error alone happens when a stop is just under way, also for windows far below their budget; a
 * detail alone when windows are reset. Both are counted, and neither is reported. From v5 on, a
 * stop that finds its window over the budget says so by an error alone. Versions without a detail
 * say event_tlob at each change of state, from which kernel/window.c sums up what a detail would
 * say.
 *
 * Pages come from the kernel, but may be cut, and tests feed damaged ones: libtraceevent believes
 * what is in a page, so the lengths in it are checked first (kernel/page.c), and it takes no more
 * steps than there are events, in a copy that has room behind its end.
 */

#include "kernel/event.h"

#include <inttypes.h>
#include <traceevent/event-parse.h>
#include <traceevent/kbuffer.h>

#include "base/sentence.h"
#include "kernel/page.h"

#define PAGE_SLACK    64 /* libtraceevent looks at the words behind the header of an event */
#define STATE_MAX     16
#define ENV_MAX       64
#define FIELDS_MAX    5
#define LABEL_START   "start"
#define LABEL_STOP    "stop"
#define ENV_CLOCK     "clk_elapsed=%" SCNu64
#define STATE_STOPPED "stopped"

/* The header of a page: a time stamp, and a word with flags and the length of what follows. */
#define PAGE_HEADER (sizeof(uint64_t) + sizeof(long))
#define LENGTH_MASK ((1UL << 27) - 1)
#define MISSED_FLAG (1UL << 31)

#define SYSTEM_NAME "rv"

const char *const kernel_event_names[KERNEL_N_EVENTS] = {
        [KERNEL_EVENT_ERROR_ENV] = "error_env_tlob",
        [KERNEL_EVENT_DETAIL] = "detail_env_tlob",
        [KERNEL_EVENT_ERROR] = "error_tlob",
        [KERNEL_EVENT_CHANGE] = "event_tlob",
};

enum {
        FIELD_ID,
        FIELD_STATE = 1, /* ERROR_ENV */
        FIELD_LABEL = 1, /* CHANGE */
        FIELD_NEXT = 2,
        FIELD_FOUND_BY = 2, /* ERROR_ENV; these two may be missing */
        FIELD_ENV = 3,
        FIELD_THRESHOLD = 1, /* DETAIL */
        FIELD_SPENT = 2,     /* three of them */
};

typedef struct EventFormat {
        int id;
        struct tep_format_field *fields[FIELDS_MAX]; /* owned by the tep_handle */
} EventFormat;

struct KernelFormats {
        struct tep_handle *tep;
        EventFormat events[KERNEL_N_EVENTS];
        bool in_us;
};

KernelFormats *kernel_formats_free(KernelFormats *formats) {
        if (!formats)
                return NULL;
        tep_free(formats->tep);
        free(formats);
        return NULL;
}

static struct tep_format_field *find_number(struct tep_event *event, const char *name, int size) {
        struct tep_format_field *field = tep_find_field(event, name);

        if (!field || field->size != size || field->offset < 0 ||
            (field->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_STRING | TEP_FIELD_IS_DYNAMIC)))
                return NULL;
        return field;
}

static int no_field(struct tep_event *event, const char *name, char **ret_error) {
        return sentence_error(-EBADMSG, ret_error,
                              "The kernel's event '%s' has no field '%s' in a form that tlobd "
                              "knows",
                              event->name, name);
}

/* The id is called pid in v2's detail. */
static int find_id(struct tep_event *event, EventFormat *ret, char **ret_error) {
        ret->fields[FIELD_ID] = find_number(event, "id", sizeof(int32_t))
                                        ?: find_number(event, "pid", sizeof(int32_t));
        return ret->fields[FIELD_ID] ? 0 : no_field(event, "id", ret_error);
}

static int find_text(struct tep_event *event, const char *name, struct tep_format_field **ret,
                     char **ret_error) {
        struct tep_format_field *field = tep_find_field(event, name);

        if (!field || !(field->flags & TEP_FIELD_IS_DYNAMIC) || field->offset < 0 ||
            field->size != sizeof(uint32_t))
                return no_field(event, name, ret_error);
        *ret = field;
        return 0;
}

static int find_error(struct tep_event *event, EventFormat *ret, char **ret_error) {
        (void) find_text(event, "event", &ret->fields[FIELD_FOUND_BY], NULL);
        (void) find_text(event, "env", &ret->fields[FIELD_ENV], NULL);
        return find_text(event, "state", &ret->fields[FIELD_STATE], ret_error);
}

static int find_change(struct tep_event *event, EventFormat *ret, char **ret_error) {
        int r = find_text(event, "event", &ret->fields[FIELD_LABEL], ret_error);

        return r < 0 ? r : find_text(event, "next_state", &ret->fields[FIELD_NEXT], ret_error);
}

static int find_breakdown(struct tep_event *event, EventFormat *ret, bool *ret_in_us,
                          char **ret_error) {
        static const char *const spent[TLOB_N_STATES] = { "running_ns", "waiting_ns",
                                                          "sleeping_ns" };
        struct tep_format_field *in_us = find_number(event, "threshold_us", sizeof(uint64_t));
        struct tep_format_field *in_ns = find_number(event, "threshold_ns", sizeof(uint64_t));

        if (!in_us == !in_ns)
                return no_field(event, "threshold_ns", ret_error);
        ret->fields[FIELD_THRESHOLD] = in_us ?: in_ns;
        *ret_in_us = in_us;
        for (size_t i = 0; i < TLOB_N_STATES; i++) {
                ret->fields[FIELD_SPENT + i] = find_number(event, spent[i], sizeof(uint64_t));
                if (!ret->fields[FIELD_SPENT + i])
                        return no_field(event, spent[i], ret_error);
        }
        return 0;
}

static int formats_add(KernelFormats *formats, KernelEventType type, const char *text,
                       char **ret_error) {
        const char *name = kernel_event_names[type];
        EventFormat *format = &formats->events[type];
        struct tep_event *event;
        int r;

        /*
         * What it does not understand is the text form, which is not used: it says so on its own.
         */
        (void) tep_parse_event(formats->tep, text, strlen(text), SYSTEM_NAME);
        event = tep_find_event_by_name(formats->tep, SYSTEM_NAME, name);
        if (!event)
                return sentence_error(-EBADMSG, ret_error,
                                      "The format of the kernel's event '%s' makes no sense", name);
        format->id = event->id;

        r = find_id(event, format, ret_error);
        if (r >= 0 && type == KERNEL_EVENT_ERROR_ENV)
                r = find_error(event, format, ret_error);
        if (r >= 0 && type == KERNEL_EVENT_CHANGE)
                r = find_change(event, format, ret_error);
        if (r >= 0 && type == KERNEL_EVENT_DETAIL)
                r = find_breakdown(event, format, &formats->in_us, ret_error);
        return r;
}

int kernel_formats_new(const char *const texts[static KERNEL_N_EVENTS], KernelFormats **ret,
                       char **ret_error) {
        _cleanup_(kernel_formats_freep) KernelFormats *formats = NULL;

        formats = calloc(1, sizeof(*formats));
        if (!formats)
                return -ENOMEM;
        formats->tep = tep_alloc();
        if (!formats->tep)
                return -ENOMEM;
        tep_set_loglevel(TEP_LOG_NONE);
        tep_set_long_size(formats->tep, sizeof(long));

        for (KernelEventType type = 0; type < KERNEL_N_EVENTS; type++) {
                int r = texts[type] ? formats_add(formats, type, texts[type], ret_error) : 0;

                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(formats);
        return 0;
}

bool kernel_formats_in_us(const KernelFormats *formats) {
        return formats->in_us;
}

/* What is in one record. */
typedef struct Record {
        const uint8_t *data;
        size_t size;
} Record;

static bool read_number(const Record *record, const struct tep_format_field *field, uint64_t *ret) {
        unsigned long long value;

        if ((size_t) field->offset + (size_t) field->size > record->size ||
            tep_read_number_field((struct tep_format_field *) field, record->data, &value) < 0)
                return false;
        *ret = value;
        return true;
}

static bool read_id(const Record *record, const struct tep_format_field *field, int *ret) {
        uint64_t value;

        if (!read_number(record, field, &value))
                return false;
        *ret = (int32_t) value;
        return true;
}

/* The text of a __data_loc field: where it is in the record, and how long, in one word. */
static bool read_text(const Record *record, const struct tep_format_field *field, char *ret,
                      size_t max) {
        size_t offset, length;
        uint64_t where;

        if (!read_number(record, field, &where))
                return false;
        offset = where & 0xffff;
        length = where >> 16 & 0xffff;
        if (offset + length > record->size || length == 0)
                return false;
        length = strnlen((const char *) record->data + offset, length);
        (void) snprintf(ret, max, "%.*s", (int) length, (const char *) record->data + offset);
        return true;
}

static bool state_from_string(const char *s, enum tlob_state *ret) {
        static const char *const names[TLOB_N_STATES] = { "running", "waiting", "sleeping" };

        for (unsigned i = 0; i < TLOB_N_STATES; i++)
                if (streq(names[i], s)) {
                        *ret = (enum tlob_state) i;
                        return true;
                }
        return false;
}

static bool decode_error_env(const EventFormat *format, const Record *record, KernelEvent *ret) {
        const struct tep_format_field *found_by = format->fields[FIELD_FOUND_BY],
                                      *env = format->fields[FIELD_ENV];
        char text[ENV_MAX];

        ret->is_stop = found_by && read_text(record, found_by, text, sizeof(text)) &&
                       streq(text, LABEL_STOP);
        if (!env || !read_text(record, env, text, sizeof(text)) ||
            sscanf(text, ENV_CLOCK, &ret->elapsed_ns) != 1)
                ret->elapsed_ns = UINT64_MAX;
        return read_text(record, format->fields[FIELD_STATE], text, STATE_MAX) &&
               state_from_string(text, &ret->state);
}

static bool decode_change(const EventFormat *format, const Record *record, KernelEvent *ret) {
        char label[STATE_MAX], next[STATE_MAX];

        if (!read_text(record, format->fields[FIELD_LABEL], label, sizeof(label)) ||
            !read_text(record, format->fields[FIELD_NEXT], next, sizeof(next)))
                return false;
        ret->is_start = streq(label, LABEL_START);
        ret->is_stop = streq(next, STATE_STOPPED);
        return ret->is_stop || state_from_string(next, &ret->state);
}

static bool decode_detail(const EventFormat *format, const Record *record, KernelEvent *ret) {
        if (!read_number(record, format->fields[FIELD_THRESHOLD], &ret->threshold))
                return false;
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                if (!read_number(record, format->fields[FIELD_SPENT + i], &ret->spent_ns[i]))
                        return false;
        return true;
}

/* False if it is none of ours, or too short for what it claims to be. */
static bool decode_record(const KernelFormats *formats, const Record *record, KernelEvent *ret) {
        struct tep_record tep = { .data = (void *) record->data, .size = (int) record->size };
        const EventFormat *format = NULL;
        int id;

        if (record->size < 2 * sizeof(uint32_t))
                return false;
        id = tep_data_type(formats->tep, &tep);
        for (KernelEventType type = 0; type < KERNEL_N_EVENTS && !format; type++)
                if (formats->events[type].id == id && formats->events[type].fields[FIELD_ID]) {
                        format = &formats->events[type];
                        ret->type = type;
                }
        if (!format || !read_id(record, format->fields[FIELD_ID], &ret->id))
                return false;
        if (ret->type == KERNEL_EVENT_ERROR_ENV)
                return decode_error_env(format, record, ret);
        if (ret->type == KERNEL_EVENT_DETAIL)
                return decode_detail(format, record, ret);
        if (ret->type == KERNEL_EVENT_CHANGE)
                return decode_change(format, record, ret);
        return true;
}

/* The walk over a page with that many events, of which libtraceevent says where they are. */
static void decode_events(const KernelFormats *formats, struct kbuffer *buffer, size_t n,
                          const uint8_t *page, size_t end, KernelEventHandler handler,
                          void *userdata, KernelPage *ret) {
        unsigned long long time_ns;
        const uint8_t *data = kbuffer_read_event(buffer, &time_ns);

        for (; n > 0; n--) {
                KernelEvent event = { .time_ns = time_ns };
                int size = kbuffer_event_size(buffer);
                Record record = { .data = data };

                if (!data || size < 0 || data < page || data > page + end ||
                    (size_t) size > (size_t) (page + end - data)) {
                        ret->damaged = true;
                        return;
                }
                record.size = (size_t) size;
                if (decode_record(formats, &record, &event)) {
                        ret->n_events++;
                        handler(&event, userdata);
                } else
                        ret->n_unknown++;
                if (n > 1)
                        data = kbuffer_next_event(buffer, &time_ns);
        }
}

static void decode_copy(const KernelFormats *formats, struct kbuffer *buffer, uint8_t *page,
                        size_t size, KernelEventHandler handler, void *userdata, KernelPage *ret) {
        unsigned long word, length;
        size_t n;

        memcpy(&word, page + sizeof(uint64_t), sizeof(word));
        length = word & LENGTH_MASK;
        if (length > size - PAGE_HEADER) {
                ret->damaged = true;
                return;
        }
        ret->missed = word & MISSED_FLAG;
        if (ret->missed)
                handler(&(KernelEvent) { .type = KERNEL_EVENT_MISSED }, userdata);
        n = kernel_page_count(page + PAGE_HEADER, length, &ret->damaged);
        /* It walks up to the first event: if there is none, it might walk on. */
        if (n > 0 && kbuffer_load_subbuffer(buffer, page) >= 0)
                decode_events(formats, buffer, n, page, PAGE_HEADER + length, handler, userdata,
                              ret);
}

int kernel_page_decode(const KernelFormats *formats, const void *page, size_t size,
                       KernelEventHandler handler, void *userdata, KernelPage *ret) {
        _cleanup_free_ uint8_t *copy = NULL;
        KernelPage result = {};
        struct kbuffer *buffer;

        if (size < PAGE_HEADER) {
                *ret = (KernelPage) { .damaged = size > 0 };
                return 0;
        }
        copy = calloc(1, size + PAGE_SLACK);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, page, size);
        buffer = kbuffer_alloc(KBUFFER_LSIZE_SAME_AS_HOST, KBUFFER_ENDIAN_SAME_AS_HOST);
        if (!buffer)
                return -ENOMEM;
        decode_copy(formats, buffer, copy, size, handler, userdata, &result);
        kbuffer_free(buffer);
        *ret = result;
        return 0;
}

/* What comes next belongs to nothing that came before. */
static void pairing_cut(KernelPairing *pairing) {
        pairing->n_unpaired += pairing->pending;
        pairing->pending = false;
        pairing->aborted = false;
}

bool kernel_pairing_push(KernelPairing *pairing, const KernelEvent *event, KernelEvent *ret) {
        bool pending = pairing->pending && pairing->error.id == event->id,
             aborted = pairing->aborted;

        if (event->type == KERNEL_EVENT_DETAIL && pending) {
                *ret = *event;
                ret->time_ns = pairing->error.time_ns;
                ret->state = pairing->error.state;
                pairing->pending = false;
                return true;
        }

        pairing_cut(pairing);
        switch (event->type) {
        case KERNEL_EVENT_ERROR_ENV:
                if (event->is_stop && pairing->believes_stops) {
                        *ret = *event;
                        pairing->aborted = true;
                        return true;
                }
                pairing->error = *event;
                pairing->pending = true;
                break;
        case KERNEL_EVENT_ERROR:
                pairing->n_aborted++;
                pairing->aborted = true;
                break;
        case KERNEL_EVENT_DETAIL:
                /* The one after an abortion belongs to it. */
                pairing->n_lone += !aborted;
                break;
        default:
                break;
        }
        return false;
}
