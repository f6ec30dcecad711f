/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAKE_TYPES_H
#define FAKE_TYPES_H

#include "fake-binding.h"

/*
 * A stand-in of another version, or a hostile one: once fake->types is a type, all properties of
 * all objects have that one. Everything else stays as it is. Returns 0 or a negative errno.
 */
int fake_types_start(Fake *fake);

#endif
