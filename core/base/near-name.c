/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Near names, for "did you mean". Nearest is the function that a C++ or Rust programmer calls by
 * the wanted name; then come names that hold it; then those that differ in few letters (edit
 * distance), and those that it begins with. Mangled names are compared as they are read, without
 * arguments. Capital letters are the same as small ones, but not as near.
 *
 * A method has a longer path than people write: it has that of its trait, parameters of types, and
 * "<>" around the type with one of Rust's two schemes of mangling, but not with the other:
 * "Fast::handle" is "<shop::Fast as shop::Handler>::handle". So a name is also near if its last
 * part is the wanted one's, and its path has the type's name in it. Letters may differ in both, in
 * as few for each word as in a name without a path.
 *
 * The names come from files that nobody vouches for, millions of them perhaps, so the work is
 * limited: when it is used up, later names are not looked at. Names that cannot be shown are left
 * out.
 */

#include "base/near-name.h"

#include <ctype.h>
#include <limits.h>

#include "base/mangled-name.h"
#include "base/sentence.h"

/* In letters compared, about a nanosecond each; a mangled letter takes longer to read. */
#define WORK_MAX         UINT64_C(200000000)
#define WORK_MANGLED     16
#define READABLE_LEN     256
#define ARGUMENTS_LEN    72
#define EDITABLE_LEN     64
#define DISTANCE_CASE    2
#define DISTANCE_METHOD  3
#define DISTANCE_INSIDE  10
#define DISTANCE_EDITED  2000
#define DISTANCE_SHORTER 3000
#define LETTERS_MAX      400 /* more are as far */

static unsigned min3(unsigned a, unsigned b, unsigned c) {
        a = a < b ? a : b;
        return a < c ? a : c;
}

/* Levenshtein's distance, one row at a time. */
static unsigned edit_distance(const char *a, size_t n, const char *b, size_t m) {
        unsigned row[EDITABLE_LEN + 1];

        for (size_t j = 0; j <= m; j++)
                row[j] = (unsigned) j;
        for (size_t i = 1; i <= n; i++) {
                unsigned diagonal = row[0];

                row[0] = (unsigned) i;
                for (size_t j = 1; j <= m; j++) {
                        unsigned above = row[j];

                        row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
                        diagonal = above;
                }
        }
        return row[m];
}

/*
 * "push_back" of "std::vector<int, std::allocator<int> >::push_back": what follows the last "::"
 * outside <>.
 */
static const char *last_part(const char *name, size_t *n) {
        const char *part = name, *end = name + *n;
        int depth = 0;

        for (const char *p = name; p < end; p++)
                if (*p == '<' || *p == '(')
                        depth++;
                else if (*p == '>' || *p == ')')
                        depth--;
                else if (*p == ':' && depth == 0)
                        part = p + 1;
        *n = (size_t) (end - part);
        return part;
}

/* True if it is the wanted name, of that length, or ends with it behind a "::". */
static bool is_called(const char *wanted, size_t length, const char *name, size_t n) {
        const char *end = name + n - length;

        return n >= length && memcmp(end, wanted, length) == 0 && (n == length || end[-1] == ':');
}

static void fold(const char *s, size_t n, char *ret) {
        for (size_t i = 0; i < n; i++)
                ret[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char) (s[i] - 'A' + 'a') : s[i];
}

static bool is_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
}

/* The last part of a path, without types: "show" of "t::show::<i32>" and of "t::show<int>". */
static const char *find_method(const char *path, size_t *n) {
        const char *part = last_part(path, n), *types;

        if (part > path + 2 && *n > 0 && part[0] == '<' && part[*n - 1] == '>') {
                *n = (size_t) (part - path) - 2;
                part = last_part(path, n);
        }
        types = memchr(part, '<', *n);
        if (types && types > part && strncmp(part, "operator", strlen("operator")) != 0)
                *n = (size_t) (types - part);
        return part;
}

/* The next word of a path at *p; *depth: in how many <> it is. NULL: there is none. */
static const char *next_word(const char **p, const char *end, int *depth, size_t *ret_length) {
        for (;;) {
                const char *begin;

                for (; *p < end && !is_word(**p); (*p)++)
                        *depth += (**p == '<') - (**p == '>');
                begin = *p;
                while (*p < end && is_word(**p))
                        (*p)++;
                *ret_length = (size_t) (*p - begin);
                if (*ret_length == 0)
                        return NULL;
                if (*ret_length != 2 || memcmp(begin, "as", 2) != 0)
                        return begin;
        }
}

static bool has_word(const char *path, size_t n, const char *word, size_t length) {
        const char *end = path + n, *found = path;

        for (; (found = memmem(found, (size_t) (end - found), word, length)); found++)
                if ((found == path || !is_word(found[-1])) &&
                    (found + length == end || !is_word(found[length])))
                        return true;
        return false;
}

/* In how many letters they differ; UINT32_MAX: in more than the limit, or they are too long. */
static unsigned limited_distance(NearNames *names, const char *a, size_t n, const char *b, size_t m,
                                 size_t limit) {
        size_t difference = m > n ? m - n : n - m;
        unsigned distance;

        if (difference > limit || n >= EDITABLE_LEN || m >= EDITABLE_LEN)
                return UINT32_MAX;
        names->work += m * n;
        distance = edit_distance(a, n, b, m);
        return distance <= limit ? distance : UINT32_MAX;
}

/* In how many letters the nearest word of the path differs. Of short words, each letter counts. */
static unsigned word_distance(NearNames *names, const char *path, size_t n, const char *word,
                              size_t length) {
        unsigned nearest = has_word(path, n, word, length) ? 0 : UINT32_MAX;
        const char *p = path, *other;
        size_t other_length = 0;

        names->work += n;
        while (nearest > 0 && (other = next_word(&p, path + n, &(int) { 0 }, &other_length))) {
                unsigned distance = limited_distance(names, word, length, other, other_length,
                                                     (length + 1) / 3);

                nearest = distance < nearest ? distance : nearest;
        }
        return nearest;
}

typedef struct PathDistance {
        unsigned n_missing; /* words that are not there */
        unsigned n_letters; /* that differ in the others */
        bool has_type;
} PathDistance;

/* What the wanted path has and the other one has not. is_exact: no letter may differ. */
static PathDistance path_distance(NearNames *names, const char *path, size_t n, bool is_exact) {
        const char *p = names->folded, *end = p + names->path_length, *word;
        PathDistance result = { .has_type = true };
        int depth = 0, type_depth = INT_MAX;
        size_t length;

        while ((word = next_word(&p, end, &depth, &length))) {
                unsigned distance;

                if (is_exact)
                        distance = has_word(path, n, word, length) ? 0 : UINT32_MAX;
                else
                        distance = word_distance(names, path, n, word, length);
                if (distance == UINT32_MAX)
                        result.n_missing++;
                else
                        result.n_letters += distance;
                if (depth <= type_depth) {
                        type_depth = depth;
                        result.has_type = distance != UINT32_MAX;
                }
        }
        return result;
}

/* "handle(int)" is as long as "handle"; what begins with '(' is not an argument. */
static size_t without_arguments(const char *part, size_t n) {
        const char *arguments = memchr(part, '(', n);

        return arguments && arguments > part ? (size_t) (arguments - part) : n;
}

/* Is it the same method of that type? Else UINT32_MAX. */
static unsigned method_distance(NearNames *names, const char *folded, size_t n) {
        size_t m = n, wanted_m = names->length;
        const char *method = find_method(folded, &m);
        const char *wanted = find_method(names->folded, &wanted_m);
        PathDistance path;
        unsigned distance;

        if (m != wanted_m || m == 0 || memcmp(method, wanted, m) != 0)
                return UINT32_MAX;
        path = path_distance(names, folded, (size_t) (method - folded), true);
        if (!path.has_type)
                return UINT32_MAX;
        distance = DISTANCE_METHOD + path.n_missing;
        return distance < DISTANCE_INSIDE ? distance : DISTANCE_INSIDE - 1;
}

/* Is it one of which the name, that of its type, or both are written with other letters? */
static unsigned misspelt_distance(NearNames *names, const char *folded, size_t n) {
        size_t m = n, wanted_m = names->length;
        const char *method = find_method(folded, &m);
        const char *wanted = find_method(names->folded, &wanted_m);
        PathDistance path;
        unsigned letters;

        if (names->path_length == 0)
                return UINT32_MAX;
        /* Without the arguments, which the other one does not have either. */
        wanted_m = without_arguments(wanted, wanted_m);
        letters = limited_distance(names, wanted, wanted_m, method, m, wanted_m / 3 + 1);
        if (letters == UINT32_MAX)
                return UINT32_MAX;
        path = path_distance(names, folded, (size_t) (method - folded), false);
        if (!path.has_type)
                return UINT32_MAX;
        letters += path.n_letters + path.n_missing;
        return DISTANCE_EDITED + (letters < LETTERS_MAX ? 2 * letters : 2 * LETTERS_MAX);
}

/* How far a name, as people read it, is from the wanted one; UINT32_MAX: not near. */
static unsigned name_distance(NearNames *names, const char *name, size_t n) {
        char folded[NEAR_NAMES_LEN];
        const char *part;
        unsigned distance;
        size_t m = n;

        if (is_called(names->wanted, names->length, name, n))
                return 0;
        fold(name, n, folded);
        if (is_called(names->folded, names->length, folded, n))
                return DISTANCE_CASE;
        distance = method_distance(names, folded, n);
        if (distance != UINT32_MAX)
                return distance;
        if (names->length >= 3 && memmem(folded, n, names->folded, names->length))
                return DISTANCE_INSIDE + 2 * (unsigned) (n - names->length) +
                       !memmem(name, n, names->wanted, names->length);

        part = last_part(folded, &m);
        distance = limited_distance(names, names->folded, names->length, part, m,
                                    names->length / 3 + 1);
        if (distance != UINT32_MAX)
                return DISTANCE_EDITED + 2 * distance + (part != folded);
        distance = misspelt_distance(names, folded, n);
        if (distance != UINT32_MAX)
                return distance;
        if (n >= 3 && n < names->length && memcmp(folded, names->folded, n) == 0)
                return DISTANCE_SHORTER + (unsigned) (names->length - m);
        return UINT32_MAX;
}

/* Without the "::h0123456789abcdef" that tools show which do not know Rust. */
static size_t without_hash(const char *name, size_t n) {
        static const size_t length = strlen("::h") + 16;

        if (n <= length || memcmp(name + n - length, "::h", 3) != 0)
                return n;
        for (size_t i = n - 16; i < n; i++)
                if (!isxdigit((unsigned char) name[i]))
                        return n;
        return n - length;
}

void near_names_init(NearNames *names, const char *wanted, size_t length) {
        size_t method_length;

        *names = (NearNames) { .wanted = wanted, .length = length };
        if (length > NEAR_NAMES_LEN)
                names->length = NEAR_NAMES_LEN;
        fold(wanted, names->length, names->folded);
        names->length = without_hash(names->folded, names->length);
        method_length = names->length;
        names->path_length = (size_t) (find_method(names->folded, &method_length) - names->folded);
}

static bool is_there(const NearNames *names, const char *name, size_t n) {
        for (size_t i = 0; i < names->n; i++)
                if (names->best[i].length == n && memcmp(names->best[i].name, name, n) == 0)
                        return true;
        return false;
}

static void insert(NearNames *names, const char *name, size_t n, unsigned distance) {
        size_t i;

        for (i = 0; i < names->n && names->best[i].distance <= distance; i++)
                ;
        if (i == NEAR_NAMES_N)
                return;
        if (names->n < NEAR_NAMES_N)
                names->n++;
        memmove(&names->best[i + 1], &names->best[i], (names->n - 1 - i) * sizeof(names->best[0]));
        names->best[i].distance = distance;
        names->best[i].name = name;
        names->best[i].length = n;
}

/*
 * The distance of a name without version. What compilers made of a function, or split off it
 * ("f.part.0"), comes behind it; "f.cold" has the same name in the source, and is no function.
 */
static unsigned symbol_distance(NearNames *names, const char *name, size_t n) {
        char readable[READABLE_LEN];
        unsigned distance;

        if (mangled_name_decode(name, false, readable, sizeof(readable))) {
                names->work += WORK_MANGLED * n;
                if (name_is_cold(name))
                        return UINT32_MAX;
                distance = name_distance(names, readable, strlen(readable));
        } else
                distance = name_distance(names, name, n);
        return distance == 0 && memchr(name, '.', n) ? 1 : distance;
}

void near_names_offer(NearNames *names, const char *name) {
        char plain[NEAR_NAMES_LEN];
        unsigned distance;
        size_t n;

        if (names->work > WORK_MAX)
                return;
        n = strnlen(name, NEAR_NAMES_LEN);
        names->work += n + 1;
        if (n == NEAR_NAMES_LEN)
                return;
        n = strcspn(name, "@");
        memcpy(plain, name, n);
        plain[n] = '\0';

        distance = n > 0 ? symbol_distance(names, plain, n) : UINT32_MAX;
        if (distance != UINT32_MAX && text_is_printable(plain) && !is_there(names, name, n))
                insert(names, name, n, distance);
}

/* As it is in the source, with arguments if it must be: NULL if that is not accepted. */
static char *describe_source(const char *mangled, NameCheck is_accepted, void *userdata) {
        char text[NEAR_NAMES_LEN];

        for (int arguments = 0; is_accepted && arguments < 2; arguments++)
                if (mangled_name_decode(mangled, arguments, text, sizeof(text)) &&
                    text_is_printable(text) && is_accepted(text, userdata))
                        return sentence_make("'%s'", text);
        return NULL;
}

/* "_ZN4node12MakeCallbackEPN2v87IsolateE (node::MakeCallback(v8::Isolate*))" */
static char *describe(const char *name, size_t n, NameCheck is_accepted, void *userdata) {
        _cleanup_free_ char *plain = strndup(name, n);
        char readable[ARGUMENTS_LEN], *text;
        bool cut;

        if (!plain)
                return NULL;
        text = describe_source(plain, is_accepted, userdata);
        if (text)
                return text;
        if (!mangled_name_decode(plain, true, readable, sizeof(readable)) ||
            !text_is_printable(readable))
                return TAKE_PTR(plain);
        cut = strlen(readable) == sizeof(readable) - 1;
        return sentence_make("%s (%s%s)", plain, readable, cut ? "..." : "");
}

char *near_names_list(const NearNames *names, NameCheck is_accepted, void *userdata) {
        char *list = strdup("");

        for (size_t i = 0; list && i < names->n; i++) {
                _cleanup_free_ char *before = list, *item = NULL;

                item = describe(names->best[i].name, names->best[i].length, is_accepted, userdata);
                list = item ? sentence_make("%s%s%s", before, i == 0 ? "" : ", ", item) : NULL;
        }
        return list;
}
