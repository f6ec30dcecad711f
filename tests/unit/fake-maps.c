/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* As the kernel's for one user: keys in the order in which they came. */

#include "fake-maps.h"

#include <bpf/bpf.h>

#include "base/cleanup.h"

#define MAPS_MAX  8
#define ITEMS_MAX 16
#define BYTES_MAX 512

typedef struct Item {
        unsigned char key[BYTES_MAX], value[BYTES_MAX];
} Item;

typedef struct FakeMap {
        size_t key_size, value_size, n;
        Item items[ITEMS_MAX];
} FakeMap;

static FakeMap maps[MAPS_MAX];
static size_t n_maps;

static FakeMap *map_of(int fd) {
        size_t i = (size_t) fd - FAKE_MAPS_FIRST;

        if (i >= n_maps)
                abort();
        return &maps[i];
}

void fake_maps_reset(void) {
        memset(maps, 0, sizeof(maps));
        n_maps = 0;
}

int fake_map_make(size_t key_size, size_t value_size) {
        if (n_maps == MAPS_MAX || key_size > BYTES_MAX || value_size > BYTES_MAX)
                abort();
        maps[n_maps] = (FakeMap) { .key_size = key_size, .value_size = value_size };
        return FAKE_MAPS_FIRST + (int) n_maps++;
}

size_t fake_map_count(int fd) {
        return map_of(fd)->n;
}

/* n: it is not there. */
static size_t find(const FakeMap *map, const void *key) {
        size_t i = 0;

        while (i < map->n && memcmp(map->items[i].key, key, map->key_size) != 0)
                i++;
        return i;
}

static int fail(int error) {
        errno = error;
        return -error;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value) {
        const FakeMap *map = map_of(fd);
        size_t i = find(map, key);

        if (i == map->n)
                return fail(ENOENT);
        memcpy(value, map->items[i].value, map->value_size);
        return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags) {
        FakeMap *map = map_of(fd);
        size_t i = find(map, key);

        if (i < map->n && flags == BPF_NOEXIST)
                return fail(EEXIST);
        if (i == map->n && flags == BPF_EXIST)
                return fail(ENOENT);
        if (i == ITEMS_MAX)
                abort();
        memcpy(map->items[i].key, key, map->key_size);
        memcpy(map->items[i].value, value, map->value_size);
        map->n += i == map->n;
        return 0;
}

int bpf_map_delete_elem(int fd, const void *key) {
        FakeMap *map = map_of(fd);
        size_t i = find(map, key);

        if (i == map->n)
                return fail(ENOENT);
        memmove(&map->items[i], &map->items[i + 1], (map->n - i - 1) * sizeof(map->items[0]));
        map->n--;
        return 0;
}

/* The first after one that is not there. */
int bpf_map_get_next_key(int fd, const void *key, void *next_key) {
        const FakeMap *map = map_of(fd);
        size_t i = key ? find(map, key) + 1 : 0;

        if (i > map->n)
                i = 0;
        if (i == map->n)
                return fail(ENOENT);
        memcpy(next_key, map->items[i].key, map->key_size);
        return 0;
}
