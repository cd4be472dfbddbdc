// SPDX-License-Identifier: MIT
// Base 32 by RFC 4648, without padding, lower case accepted when reading.
#include <stddef.h>
#include <stdint.h>

#include "lantern/status.h"

static const char alphabet[32] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

static int digit_value(char character) {
    if (character >= 'a' && character <= 'z') return character - 'a';
    if (character >= 'A' && character <= 'Z') return character - 'A';
    if (character >= '2' && character <= '7') return character - '2' + 26;
    return -1;
}

size_t ln_base32_encoded_size(size_t num_bytes) {
    return (num_bytes * 8 + 4) / 5;
}

size_t ln_base32_encode(const uint8_t *bytes, size_t num_bytes, char *out) {
    uint64_t window = 0;
    unsigned num_bits = 0;
    char *start = out;
    for (size_t index = 0; index < num_bytes; ++index) {
        window = window << 8 | bytes[index];
        num_bits += 8;
        while (num_bits >= 5) {
            num_bits -= 5;
            *out++ = alphabet[window >> num_bits & 31];
        }
    }
    if (num_bits > 0) {
        *out++ = alphabet[window << (5 - num_bits) & 31];
    }
    return (size_t)(out - start);
}

/* Bits left over at the end must be zero: two spellings of one value would
 * otherwise decode alike, which is how signatures get forged. */
ln_status ln_base32_decode(const char *text, size_t length, uint8_t *out, size_t *num_bytes) {
    uint64_t window = 0;
    unsigned num_bits = 0;
    *num_bytes = 0;
    for (size_t index = 0; index < length; ++index) {
        int value = digit_value(text[index]);
        if (value < 0) {
            return LN_SYNTAX;
        }
        window = window << 5 | (unsigned)value;
        num_bits += 5;
        if (num_bits >= 8) {
            num_bits -= 8;
            out[(*num_bytes)++] = (uint8_t)(window >> num_bits);
        }
    }
    if (num_bits >= 5 || (window & ((1u << num_bits) - 1)) != 0) {
        return LN_TRUNCATED;
    }
    return LN_OK;
}
