/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The metrics for systemd-report and whoever else asks over Varlink (io.systemd.Metrics). tlobd
 * does not speak it: this process asks tlobd over D-Bus, as "tlobctl metrics" does, and has no
 * rights that others do not have.
 *
 * An answer is made once, as text, for all who ask within a moment, and goes out to each of them as
 * fast as they read: no more than a chunk of it waits for any. sd-varlink gives no notice when it
 * has sent what it has; so all are looked at after each event, of which sending is one. Who neither
 * asks nor reads for some time is hung up on.
 *
 * While tlobd is asked, nobody else is served: they want to know the same. That it does not answer
 * is said once, and no more until it has answered again.
 */

#include "metric-server.h"

#include <err.h>
#include <poll.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <systemd/sd-varlink-idl.h>
#include <systemd/sd-varlink.h>

#include "base/clock.h"
#include "base/duration.h"
#include "metric-json.h"
#include "metric-source.h"
#include "version.h"

#define FRESH_NS         (100 * NSEC_PER_MSEC)
#define PATIENCE_NS      (30 * NSEC_PER_SEC) /* as systemd-report has */
#define LOOK_USEC        (UINT64_C(5) * 1000 * 1000)
#define CHUNK_SIZE       (16U << 10)
#define PEERS_MAX        512
#define PEERS_OF_UID_MAX 256

/* Until systemd 258, there was no name for a value of any type. */
#if !HAVE_VARLINK_ANY
#define SD_VARLINK_ANY SD_VARLINK_OBJECT
#endif

static SD_VARLINK_DEFINE_ENUM_TYPE(MetricFamilyType, SD_VARLINK_DEFINE_ENUM_VALUE(counter),
                                   SD_VARLINK_DEFINE_ENUM_VALUE(gauge),
                                   SD_VARLINK_DEFINE_ENUM_VALUE(string));

static SD_VARLINK_DEFINE_ERROR(NoSuchMetric);

static SD_VARLINK_DEFINE_METHOD_FULL(
        List, SD_VARLINK_REQUIRES_MORE, SD_VARLINK_FIELD_COMMENT("Name of the family"),
        SD_VARLINK_DEFINE_OUTPUT(name, SD_VARLINK_STRING, 0),
        SD_VARLINK_FIELD_COMMENT("A number or a string"),
        SD_VARLINK_DEFINE_OUTPUT(value, SD_VARLINK_ANY, 0), SD_VARLINK_FIELD_COMMENT("The unit"),
        SD_VARLINK_DEFINE_OUTPUT(object, SD_VARLINK_STRING, SD_VARLINK_NULLABLE),
        SD_VARLINK_FIELD_COMMENT("The binding, and others"),
        SD_VARLINK_DEFINE_OUTPUT(fields, SD_VARLINK_STRING, SD_VARLINK_MAP | SD_VARLINK_NULLABLE));

static SD_VARLINK_DEFINE_METHOD_FULL(Describe, SD_VARLINK_REQUIRES_MORE,
                                     SD_VARLINK_FIELD_COMMENT("Name of the family"),
                                     SD_VARLINK_DEFINE_OUTPUT(name, SD_VARLINK_STRING, 0),
                                     SD_VARLINK_FIELD_COMMENT("What it is"),
                                     SD_VARLINK_DEFINE_OUTPUT(description, SD_VARLINK_STRING, 0),
                                     SD_VARLINK_DEFINE_OUTPUT_BY_TYPE(type, MetricFamilyType, 0));

static SD_VARLINK_DEFINE_INTERFACE(io_systemd_Metrics, "io.systemd.Metrics",
                                   SD_VARLINK_INTERFACE_COMMENT("Metrics"),
                                   &vl_type_MetricFamilyType,
                                   SD_VARLINK_SYMBOL_COMMENT("All metrics, with their values"),
                                   &vl_method_List,
                                   SD_VARLINK_SYMBOL_COMMENT("The families of metrics"),
                                   &vl_method_Describe, &vl_error_NoSuchMetric);

/* Messages, each with its NUL. */
typedef struct Answer {
        unsigned n_ref;
        char *text;
        size_t size;
} Answer;

typedef struct Server Server;

typedef struct Peer {
        Server *server;
        sd_varlink *link; /* not owned: it has the peer */
        sd_varlink *held; /* the same while there is an answer */
        Answer *answer;   /* what it is being sent; or NULL */
        size_t sent;
        uint64_t moved_ns;
        struct Peer *next, **to;
} Peer;

struct Server {
        Client *client;
        sd_event *event;
        sd_varlink_server *varlink;
        Peer *peers;
        Answer *latest; /* of the metrics; or NULL */
        uint64_t latest_ns;
        unsigned n_served; /* peers that are being sent an answer */
        uint64_t used_ns;
};

static Answer *answer_unref(Answer *answer) {
        if (answer && --answer->n_ref == 0) {
                free(answer->text);
                free(answer);
        }
        return NULL;
}
DEFINE_CLEANUP(Answer, answer_unref);

static Answer *answer_ref(Answer *answer) {
        answer->n_ref++;
        return answer;
}

/* Owns message. */
static int write_message(void *userdata, json_object *message) {
        _cleanup_json_ json_object *owned = message;
        size_t length;
        const char *text = json_object_to_json_string_length(
                owned, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);

        return text && fwrite(text, 1, length + 1, userdata) == length + 1 ? 0 : -ENOMEM;
}

static int write_metrics(FILE *f, const void *userdata) {
        MetricJson json = { .handler = write_message, .userdata = f };
        MetricSink sink = metric_json_sink(&json);
        int r = metric_source_list(userdata, &sink);

        return r < 0 ? r : json.error;
}

static int write_families(FILE *f, const void *userdata) {
        const MetricFamily *family;

        for (size_t i = 0; (family = metric_source_family(i)); i++) {
                json_object *message = metric_json_describe(family);
                int r = message ? write_message(f, message) : -ENOMEM;

                if (r < 0)
                        return r;
        }
        return 0;
}

static int answer_new(int (*write)(FILE *, const void *), const void *userdata, Answer **ret) {
        _cleanup_(answer_unrefp) Answer *answer = calloc(1, sizeof(*answer));
        FILE *f;
        int r;

        if (!answer)
                return -ENOMEM;
        answer->n_ref = 1;
        f = open_memstream(&answer->text, &answer->size);
        if (!f)
                return -errno;
        r = write(f, userdata);
        if (fclose(f) != 0 && r >= 0)
                r = -ENOMEM;
        if (r >= 0)
                *ret = TAKE_PTR(answer);
        return r;
}

/*
 * An answer is good for a moment, and for as many moments as others are being served: else each of
 * many who ask at once has one of its own kept for it.
 */
static bool is_fresh(const Server *server) {
        return server->latest &&
               now_ns() - server->latest_ns <= FRESH_NS * (1 + (uint64_t) server->n_served);
}

static int get_metrics(Server *server, Answer **ret) {
        _cleanup_(metric_answer_done) MetricAnswer answer = {};
        Connection *connection = &server->client->connection;
        int r;

        if (!is_fresh(server)) {
                server->latest = answer_unref(server->latest);
                r = metric_source_ask(server->client, &answer);
                connection->is_quiet = r < 0;
                connection_done(connection);
                if (r < 0 && connection_was_refused(r))
                        return r;
                r = answer_new(write_metrics, &answer, &server->latest);
                if (r < 0)
                        return r;
                server->latest_ns = now_ns();
        }
        *ret = answer_ref(server->latest);
        return 0;
}

/* Neither method takes parameters. Returns 0; otherwise the call has been answered. */
static int refuse_parameters(sd_varlink *link, sd_json_variant *parameters) {
        static const sd_json_dispatch_field none[] = { {} };

        return sd_varlink_dispatch(link, parameters, none, NULL);
}

/*
 * Takes the answer. It is sent when the loop comes by. In systemd 262, who has not answered yet
 * and does not hold the link either loses it.
 */
static int begin(Peer *peer, Answer *answer) {
        peer->answer = answer;
        peer->held = sd_varlink_ref(peer->link);
        peer->server->n_served++;
        peer->sent = 0;
        peer->moved_ns = peer->server->used_ns = now_ns();
        return 0;
}

static int on_list(sd_varlink *link, sd_json_variant *parameters, sd_varlink_method_flags_t flags,
                   void *userdata) {
        Peer *peer = userdata;
        Answer *answer;
        int r;

        r = refuse_parameters(link, parameters);
        if (r != 0)
                return r;
        r = get_metrics(peer->server, &answer);
        return r < 0 ? r : begin(peer, answer);
}

static int on_describe(sd_varlink *link, sd_json_variant *parameters,
                       sd_varlink_method_flags_t flags, void *userdata) {
        Answer *answer;
        int r;

        r = refuse_parameters(link, parameters);
        if (r != 0)
                return r;
        r = answer_new(write_families, NULL, &answer);
        return r < 0 ? r : begin(userdata, answer);
}

static void end(Peer *peer) {
        if (!peer->answer)
                return;
        peer->server->n_served--;
        peer->answer = answer_unref(peer->answer);
        peer->held = sd_varlink_unref(peer->held);
}

/* Sends one message; the last one ends the answer. */
static int send_message(Peer *peer) {
        _cleanup_(sd_json_variant_unrefp) sd_json_variant *message = NULL;
        const char *text = peer->answer->text + peer->sent;
        int r;

        r = sd_json_parse(text, 0, &message, NULL, NULL);
        if (r < 0)
                return r;
        peer->sent += strlen(text) + 1;
        if (peer->sent < peer->answer->size)
                return sd_varlink_notify(peer->link, message);
        r = sd_varlink_reply(peer->link, message);
        end(peer);
        return r;
}

static int send_chunk(Peer *peer) {
        size_t end = peer->sent + CHUNK_SIZE;

        peer->moved_ns = peer->server->used_ns = now_ns();
        while (peer->answer && peer->sent < end) {
                int r = send_message(peer);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The link goes, and with it the peer. */
static void hang_up(Peer *peer) {
        _cleanup_(sd_varlink_close_unrefp) sd_varlink *link = sd_varlink_ref(peer->link);
}

/* All that sd-varlink has been given is sent. */
static bool is_ready(const Peer *peer) {
        int events = sd_varlink_get_events(peer->link);

        return events >= 0 && !(events & POLLOUT);
}

static int on_event(sd_event_source *source, void *userdata) {
        Server *server = userdata;
        Peer *next;

        for (Peer *peer = server->peers; peer; peer = next) {
                next = peer->next;
                if (peer->answer && is_ready(peer) && send_chunk(peer) < 0)
                        hang_up(peer);
        }
        return 0;
}

/* By a newer one, which the socket starts for whoever asks next, also if it is one who is here. */
static bool is_replaced(void) {
        struct stat st;

        return stat("/proc/self/exe", &st) >= 0 && st.st_nlink == 0;
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata) {
        Server *server = userdata;
        uint64_t now = now_ns();
        Peer *next;

        for (Peer *peer = server->peers; peer; peer = next) {
                next = peer->next;
                if (now - peer->moved_ns > PATIENCE_NS)
                        hang_up(peer);
        }
        if (!server->peers && now - server->used_ns > PATIENCE_NS)
                return sd_event_exit(server->event, 0);
        if (server->n_served == 0 && is_replaced())
                return sd_event_exit(server->event, 0);
        (void) sd_event_source_set_time_relative(source, LOOK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_connect(sd_varlink_server *varlink, sd_varlink *link, void *userdata) {
        Server *server = userdata;
        Peer *peer = calloc(1, sizeof(*peer));

        if (!peer)
                return -ENOMEM;
        *peer = (Peer) {
                .server = server,
                .link = link,
                .moved_ns = now_ns(),
                .next = server->peers,
                .to = &server->peers,
        };
        if (peer->next)
                peer->next->to = &peer->next;
        server->peers = peer;
        server->used_ns = peer->moved_ns;
        (void) sd_varlink_set_userdata(link, peer);
        return 0;
}

static void on_disconnect(sd_varlink_server *varlink, sd_varlink *link, void *userdata) {
        Peer *peer = sd_varlink_get_userdata(link);

        /* One that could not be taken has none. */
        if (!peer)
                return;
        *peer->to = peer->next;
        if (peer->next)
                peer->next->to = peer->to;
        (void) sd_varlink_set_userdata(link, NULL);
        end(peer);
        free(peer);
}

static int make_server(Server *server) {
        int r;

        r = sd_varlink_server_new(&server->varlink, SD_VARLINK_SERVER_ACCOUNT_UID);
        if (r < 0)
                return r;
        (void) sd_varlink_server_set_userdata(server->varlink, server);
        r = sd_varlink_server_set_info(server->varlink, "tlob", "tlobctl", VERSION, NULL);
        if (r >= 0)
                r = sd_varlink_server_add_interface(server->varlink,
                                                    &vl_interface_io_systemd_Metrics);
        if (r >= 0)
                r = sd_varlink_server_bind_method_many(server->varlink, "io.systemd.Metrics.List",
                                                       on_list, "io.systemd.Metrics.Describe",
                                                       on_describe);
        if (r >= 0)
                r = sd_varlink_server_bind_connect(server->varlink, on_connect);
        if (r >= 0)
                r = sd_varlink_server_bind_disconnect(server->varlink, on_disconnect);
        if (r >= 0)
                r = sd_varlink_server_set_connections_max(server->varlink, PEERS_MAX);
        if (r >= 0)
                r = sd_varlink_server_set_connections_per_uid_max(server->varlink,
                                                                  PEERS_OF_UID_MAX);
        return r;
}

static int make_loop(Server *server) {
        int r;

        r = sd_event_new(&server->event);
        if (r >= 0)
                r = sd_varlink_server_attach_event(server->varlink, server->event, 0);
        if (r >= 0)
                r = sd_event_add_post(server->event, NULL, on_event, server);
        if (r >= 0)
                r = sd_event_add_time_relative(server->event, NULL, CLOCK_MONOTONIC, LOOK_USEC, 0,
                                               on_look, server);
        return r;
}

static void server_done(Server *server) {
        if (server->varlink)
                (void) sd_varlink_server_shutdown(server->varlink);
        sd_varlink_server_unref(server->varlink);
        sd_event_unref(server->event);
        answer_unref(server->latest);
}

static int complain(int r) {
        errno = -r;
        warn("Failed to answer over Varlink");
        return r;
}

int metric_server_run(Client *client) {
        _cleanup_(server_done) Server server = { .client = client, .used_ns = now_ns() };
        int r;

        r = make_server(&server);
        if (r < 0)
                return complain(r);
        r = sd_varlink_server_listen_auto(server.varlink);
        if (r == 0) {
                warnx("systemd has passed no socket; start tlob-metrics-varlink.socket instead");
                return -EINVAL;
        }
        if (r >= 0)
                r = make_loop(&server);
        if (r >= 0)
                r = sd_event_loop(server.event);
        return r < 0 ? complain(r) : 0;
}
