/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The terminal of tlobctl top. A handful of sequences that every terminal of today knows do it: the
 * alternate screen, so that what was there before comes back; the cursor to the beginning, and the
 * rest of each line erased after it is written, so that nothing flickers; and one write() for all.
 *
 * The last column stays free: with a character in it, terminals differ in where the cursor is, and
 * so in what erasing the rest of the line erases.
 */

#include "top/screen.h"

#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Without a cursor, and without lines that go on below, should one be too long all the same. */
#define ENTER      "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
#define LEAVE      "\x1b[?7h\x1b[?25h\x1b[?1049l"
#define HOME       "\x1b[H"
#define ERASE_LINE "\x1b[K"
#define ERASE_REST "\x1b[J"

#define WIDTH  80 /* of a terminal that does not tell, as on a serial line */
#define HEIGHT 24

bool screen_is_possible(void) {
        return isatty(STDOUT_FILENO) && !streq_empty(getenv("TERM"), "") &&
               !streq_empty(getenv("TERM"), "dumb");
}

int screen_open(Screen *screen) {
        struct termios raw;
        int r;

        if (screen->is_open)
                return 0;
        screen->has_keys = tcgetattr(STDIN_FILENO, &screen->before) >= 0;
        if (screen->has_keys) {
                raw = screen->before;
                /* ^S would hold up this program, with all its signals. */
                raw.c_iflag &= ~(tcflag_t) IXON;
                raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
                raw.c_cc[VMIN] = 1;
                raw.c_cc[VTIME] = 0;
                if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
                        return -errno;
        }
        screen->is_open = true;
        r = write_all(STDOUT_FILENO, ENTER, strlen(ENTER));
        if (r < 0)
                screen_close(screen);
        return r;
}

void screen_close(Screen *screen) {
        if (!screen->is_open)
                return;
        (void) write_all(STDOUT_FILENO, LEAVE, strlen(LEAVE));
        if (screen->has_keys)
                (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
        screen->is_open = false;
}

void screen_measure(size_t *ret_width, size_t *ret_height) {
        struct winsize size = {};

        (void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        *ret_width = (size.ws_col > 0 ? size.ws_col : WIDTH) - 1U;
        *ret_height = size.ws_row > 0 ? size.ws_row : HEIGHT;
        if (*ret_width == 0)
                *ret_width = 1;
}

int screen_draw(const char *text, size_t height) {
        _cleanup_free_ char *frame = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&frame, &size);

        if (!f)
                return -ENOMEM;
        (void) fputs(HOME, f);
        for (; *text != '\0' && height > 0; height--) {
                size_t n = strcspn(text, "\n");

                (void) fwrite(text, 1, n, f);
                (void) fputs(ERASE_LINE, f);
                text += n;
                text += *text == '\n';
                /* Not after the last: the screen would scroll. */
                if (*text != '\0' && height > 1)
                        (void) fputs("\r\n", f);
        }
        (void) fputs(ERASE_REST, f);
        if (fclose(f) != 0)
                return -ENOMEM;
        return write_all(STDOUT_FILENO, frame, size);
}
