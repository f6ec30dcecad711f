/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_PAGE_H
#define KERNEL_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How many events the records of a page hold. data, size: what follows the page's header. The walk
 * ends at the first record whose length cannot be true: *ret_damaged.
 */
size_t kernel_page_count(const uint8_t *data, size_t size, bool *ret_damaged);

#endif
