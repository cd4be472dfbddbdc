/* SPDX-License-Identifier: MIT */
#ifndef LANTERN_UTF8_H
#define LANTERN_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "lantern/status.h"

#define LN_REPLACEMENT_CHARACTER 0xFFFDu

/* Decodes one code point. `*cursor` moves past it, also on failure: past the
 * longest prefix that could have been well formed (Unicode 15, section 3.9). */
ln_status ln_utf8_next(const unsigned char **cursor, const unsigned char *end, uint32_t *code_point);

/* Writes at most four bytes and returns how many; 0 for a surrogate or a value above U+10FFFF. */
size_t ln_utf8_encode(uint32_t code_point, unsigned char out[4]);

/* Number of code points, malformed sequences counted once each. */
size_t ln_utf8_length(const unsigned char *text, size_t num_bytes);

#endif
