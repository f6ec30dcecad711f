/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl top": bindings or units as they change, as top and systemd-cgtop show processes. This
 * file has the loop: it waits for the bus, for keys, for signals and for the next screen, whichever
 * comes first, and for nothing else. What is known is in top-watch.c, what it comes to in
 * top/rows.c, how it looks in top/view.c, and the terminal in top/screen.c.
 *
 * Output that is no terminal, or is for programs, gets one screen after the other, without keys;
 * the first one when there is something to compare with.
 */

#include <err.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "top-json.h"
#include "top-watch.h"
#include "top/keys.h"
#include "top/screen.h"
#include "top/view.h"
#include "verbs.h"

#define DELAY_DEFAULT_NS NSEC_PER_SEC
#define GONE             "tlobd has stopped; waiting for it to come back"
#define SILENT           "tlobd does not answer; asking again"

typedef struct Top {
        Client *client;
        Filter filter;
        char *filter_text;
        TopWatch watch;
        View view;
        Screen screen;
        KeyReader keys;
        int signals; /* a signalfd, or negative: signals do what they always do */
        int caught;  /* the signal that ends it, or 0 */
        bool interactive;
        bool is_done;
        bool is_stale; /* what is on the screen */
        bool was_silent;
        uint64_t delay_ns, due_ns;
        uint32_t left; /* screens; 0: no limit */
} Top;

static void top_done(Top *top) {
        screen_close(&top->screen);
        top_watch_close(&top->watch);
        filter_done(&top->filter);
        free(top->filter_text);
        safe_close(top->signals);
}

static uint64_t clock_of(const Top *top) {
        return connection_is_local(&top->client->connection) ? now_ns() : 0;
}

static const char *message_of(const TopWatch *watch) {
        if (watch->is_gone)
                return GONE;
        return watch->is_silent ? watch->refusal ?: SILENT : NULL;
}

static void format_time(char buf[static 16]) {
        time_t now = time(NULL);
        struct tm tm;

        if (!localtime_r(&now, &tm) || strftime(buf, 16, "%H:%M:%S", &tm) == 0)
                (void) strcpy(buf, "-");
}

/* Keeps the last rows in sight. */
static void limit_scrolling(Top *top, const Rows *rows) {
        size_t room = view_count_rows(&top->view, &top->watch.windows);
        size_t last = rows->n > room ? rows->n - room : 0;

        if (top->view.first > last)
                top->view.first = last;
}

static int show_text(Top *top, const Rows *rows) {
        _cleanup_free_ char *text = NULL;
        char time[16];
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        int r;

        if (!f)
                return -ENOMEM;
        format_time(time);
        top->view.time = time;
        top->view.now_ns = clock_of(top);
        top->view.message = message_of(&top->watch);
        if (top->interactive)
                screen_measure(&top->view.width, &top->view.height);
        limit_scrolling(top, rows);
        r = view_write(&top->view, rows, &top->watch.windows, f);
        if (fclose(f) != 0 || r < 0)
                return -ENOMEM;
        if (top->interactive)
                return screen_draw(text, top->view.height);
        (void) printf("%s%s", top->client->output.separate ? "\n" : "", text);
        top->client->output.separate = true;
        return 0;
}

static int show_json(Top *top, const Rows *rows) {
        _cleanup_json_ json_object *object = NULL;
        int r;

        r = top_to_json(rows, &top->watch.windows, top->view.order.by_unit, clock_of(top), &object);
        return r < 0 ? r : output_json(&top->client->output, object);
}

static int show(Top *top) {
        Rows rows;
        int r;

        r = rows_make(&top->watch.before, &top->watch.now, &top->view.order, &rows);
        if (r < 0)
                return r;
        r = top->client->output.json != JSON_OFF ? show_json(top, &rows) : show_text(top, &rows);
        rows_done(&rows);
        top->is_stale = false;
        if (r >= 0 && !top->interactive && (fflush(stdout) != 0 || ferror(stdout)))
                top->is_done = true;
        return r;
}

/* A new answer, if it can be compared with another one, or the terminal has shown nothing yet. */
static int show_new(Top *top) {
        int r;

        top->watch.is_new = false;
        if (!top->interactive && top->watch.before.time_ns == 0)
                return 0;
        r = show(top);
        if (r >= 0 && top->watch.before.time_ns > 0 && top->left > 0) {
                top->left--;
                top->is_done = top->left == 0;
        }
        return r;
}

/* Without a screen, on standard error. When it is back, it is asked at once. */
static void tell_moved(Top *top) {
        top->watch.has_moved = false;
        top->is_stale = true;
        if (!top->interactive)
                warnx("%s", top->watch.is_gone ? GONE : "tlobd has started");
        if (!top->watch.is_gone)
                top->due_ns = 0;
}

/* The next question is its own date. */
static void tell_silence(Top *top) {
        top->was_silent = top->watch.is_silent;
        top->is_stale = true;
        if (!top->interactive && top->was_silent)
                warnx("%s", message_of(&top->watch));
}

static void change_delay(Top *top, bool more) {
        uint64_t delay_ns = more ? top->delay_ns * 2 : top->delay_ns / 2;

        if (delay_ns >= DELAY_MIN_NS && delay_ns <= DELAY_MAX_NS)
                top->delay_ns = delay_ns;
        top->due_ns = now_ns() + top->delay_ns;
}

static void scroll(Top *top, int key) {
        size_t room = view_count_rows(&top->view, &top->watch.windows);
        size_t step = key == KEY_UP || key == KEY_DOWN ? 1 : room;

        if (key == KEY_HOME)
                top->view.first = 0;
        else if (key == KEY_END)
                top->view.first = SIZE_MAX / 2;
        else if (key == KEY_DOWN || key == KEY_PAGE_DOWN)
                top->view.first += step;
        else
                top->view.first -= top->view.first < step ? top->view.first : step;
}

static bool sort_by(Top *top, int key) {
        static const struct {
                int key;
                SortKey by;
        } keys[] = {
                { 'v', SORT_VIOLATIONS }, { 'w', SORT_WINDOWS }, { '5', SORT_P50 },
                { '9', SORT_P99 },        { 'm', SORT_MAX },     { 'c', SORT_COST },
                { 't', SORT_STATE },      { 'n', SORT_NAME },
        };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (keys[i].key == key) {
                        top->view.order.key = keys[i].by;
                        return true;
                }
        return false;
}

static void obey(Top *top, int key) {
        bool was_help = top->view.help;

        if (key == KEY_NONE)
                return;
        top->view.help = false;
        top->is_stale = true;
        if (sort_by(top, key) || (was_help && key != 'q'))
                return;
        switch (key) {
        case 'q':
                top->is_done = true;
                return;
        case 'r':
                top->view.order.reverse = !top->view.order.reverse;
                return;
        case 'u':
                top->view.order.by_unit = !top->view.order.by_unit;
                return;
        case 'h':
        case '?':
                top->view.help = true;
                return;
        case ' ':
                top->due_ns = 0;
                return;
        case '+':
        case '-':
                change_delay(top, key == '+');
                return;
        case KEY_UP ... KEY_END:
                scroll(top, key);
                return;
        default:
                return;
        }
}

static void read_keys(Top *top) {
        char bytes[64];
        ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

        /* The terminal is gone. */
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
                top->is_done = true;
        for (ssize_t i = 0; i < n; i++)
                obey(top, key_reader_feed(&top->keys, bytes[i]));
}

/* It does to us what it always does. Afterwards it is blocked or not. */
static void take_signal(int number, int how) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, number);
        (void) raise(number);
        (void) sigprocmask(SIG_UNBLOCK, &set, NULL);
        (void) sigprocmask(how, &set, NULL);
}

/*
 * The shell is to find its terminal as it was; and we find it changed when we are back. Where no
 * shell would wake us up, this signal does nothing.
 */
static int pause_for_shell(Top *top) {
        screen_close(&top->screen);
        take_signal(SIGTSTP, SIG_BLOCK);
        return screen_open(&top->screen);
}

static int read_signal(Top *top) {
        struct signalfd_siginfo info;

        if (read(top->signals, &info, sizeof(info)) != sizeof(info))
                return 0;
        top->is_stale = true;
        switch (info.ssi_signo) {
        case SIGWINCH:
                return 0;
        case SIGTSTP:
                return pause_for_shell(top);
        case SIGCONT:
                /* After a SIGSTOP that nobody could see coming. */
                screen_close(&top->screen);
                return screen_open(&top->screen);
        default:
                top->caught = (int) info.ssi_signo;
                top->is_done = true;
                return 0;
        }
}

static int wait_for_event(Top *top) {
        sd_bus *bus = top->client->connection.bus;
        uint64_t now = now_ns(), bus_usec = UINT64_MAX, until = top->due_ns;
        struct pollfd fds[] = {
                { .fd = sd_bus_get_fd(bus), .events = (short) sd_bus_get_events(bus) },
                { .fd = top->signals, .events = POLLIN },
                { .fd = top->screen.is_open && top->screen.has_keys ? STDIN_FILENO : -1,
                  .events = POLLIN },
        };
        struct timespec timeout;
        int r;

        r = sd_bus_get_timeout(bus, &bus_usec);
        if (r < 0)
                return r;
        /* While an answer is due, the next question has time. */
        if (top->watch.asking)
                until = UINT64_MAX;
        if (bus_usec < until / 1000)
                until = bus_usec * 1000;
        until = until > now ? until - now : 0;
        timeout = (struct timespec) { (time_t) (until / NSEC_PER_SEC),
                                      (long) (until % NSEC_PER_SEC) };
        if (ppoll(fds, ELEMENTSOF(fds), until > NSEC_PER_HOUR ? NULL : &timeout, NULL) < 0)
                return errno == EINTR ? 0 : -errno;
        if (fds[2].revents != 0)
                read_keys(top);
        return fds[1].revents != 0 ? read_signal(top) : 0;
}

/* Returns 0, or a negative errno: -EIO and its like when the terminal is gone. */
static int run(Top *top) {
        int r = 0;

        top->due_ns = now_ns() + top->delay_ns;
        while (r >= 0 && !top->is_done) {
                r = sd_bus_process(top->client->connection.bus, NULL);
                if (r < 0 || top->watch.error < 0)
                        return r < 0 ? r : top->watch.error;
                if (top->watch.has_moved)
                        tell_moved(top);
                if (top->watch.is_silent != top->was_silent)
                        tell_silence(top);
                if (r > 0)
                        continue;
                if (top->watch.is_new)
                        r = show_new(top);
                else if (top->is_stale && top->interactive)
                        r = show(top);
                if (r < 0 || top->is_done)
                        break;
                if (now_ns() >= top->due_ns && !top->watch.asking) {
                        top->due_ns = now_ns() + top->delay_ns;
                        r = top->watch.is_gone ? 0 : top_watch_ask(&top->watch);
                }
                if (r >= 0)
                        r = wait_for_event(top);
        }
        return r;
}

/* All that could end it in the middle, or needs the screen. */
static int catch_signals(Top *top) {
        static const int numbers[] = {
                SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT,
        };
        sigset_t set;

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                (void) sigaddset(&set, numbers[i]);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
        top->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return top->signals < 0 ? -errno : 0;
}

/* Whoever waits for us is to see that it was a signal. */
static void end_by_signal(int number) {
        (void) signal(number, SIG_DFL);
        take_signal(number, SIG_UNBLOCK);
}

/* What is left out of the rows: the options and the pattern, as they were given. */
static int describe_filter(Top *top, const Options *options, const char *pattern) {
        const char *unit = options->unit, *binding = options->binding;

        return asprintf(&top->filter_text, "%s%s%s%s%s%s%s", pattern ?: "",
                        pattern && (unit || binding) ? " " : "", unit ? "unit " : "", unit ?: "",
                        unit && binding ? " " : "", binding ? "binding " : "", binding ?: "") < 0
                       ? -ENOMEM
                       : 0;
}

static int top_init(Top *top, Client *client, const char *pattern) {
        const Options *options = &client->options;
        bool utf8 = streq(nl_langinfo(CODESET), "UTF-8");
        int r;

        *top = (Top) {
                .client = client,
                .signals = -EBADF,
                .delay_ns = options->delay_ns > 0 ? options->delay_ns : DELAY_DEFAULT_NS,
                .left = options->lines,
                .interactive =
                        !options->batch && client->output.json == JSON_OFF && screen_is_possible(),
        };
        client->output.pager_wanted = false;
        r = filter_init(&top->filter, &client->connection);
        if (r >= 0)
                r = describe_filter(top, options, pattern);
        if (r < 0)
                return r;
        top->watch = (TopWatch) { .connection = &client->connection,
                                  .filter = &top->filter,
                                  .pattern = pattern };
        top->view = (View) {
                .colors = client->output.colors,
                .utf8 = utf8,
                .legend = options->legend,
                .keys = options->legend && top->interactive,
                .order = { .by_unit = options->units, .key = options->sort },
                .filter = top->filter_text,
        };
        return 0;
}

static int start(Top *top) {
        int r;

        if (!top->interactive)
                return 0;
        r = catch_signals(top);
        return r < 0 ? r : screen_open(&top->screen);
}

ExitStatus verb_top(Client *client, int argc, char **argv) {
        _cleanup_(top_done) Top top = { .signals = -EBADF };
        int r;

        if (connection_open(&client->connection) < 0)
                return STATUS_FAILED;
        r = top_init(&top, client, argc > 0 ? argv[0] : NULL);
        if (r < 0)
                return status_of_memory(r);
        if (top_watch_open(&top.watch) < 0)
                return STATUS_FAILED;
        r = start(&top);
        if (r >= 0)
                r = run(&top);
        screen_close(&top.screen);
        if (top.caught > 0)
                end_by_signal(top.caught);
        if (r < 0) {
                errno = -r;
                warn("%s", sd_bus_is_open(client->connection.bus) > 0
                                   ? "Failed to show it"
                                   : "The connection to the bus is lost");
        }
        return status_of(r);
}
