// SPDX-License-Identifier: MIT
// Base 32 by RFC 4648, without padding, lower case accepted when reading.
#include <stddef.h>
#include <stdint.h>

#include "lantern/status.h"

static const char alphabet[32] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

static int decode_digit(char character) {
    if (character >= 'a' && character <= 'z') return character - 'a';
    if (character >= 'A' && character <= 'Z') return character - 'A';
    if (character >= '2' && character <= '7') return character - '2' + 26;
    return -1;
}

size_t b32_encoded_size(size_t size) {
    return (size * 8 + 4) / 5;
}

size_t b32_encode(const uint8_t *bytes, size_t size, char *out) {
    uint64_t accumulator = 0;
    unsigned bits = 0;
    char *start = out;
    for (size_t index = 0; index < size; ++index) {
        accumulator = accumulator << 8 | bytes[index];
        bits += 8;
        while (bits >= 5) {
            bits -= 5;
            *out++ = alphabet[accumulator >> bits & 31];
        }
    }
    if (bits > 0) {
        *out++ = alphabet[accumulator << (5 - bits) & 31];
    }
    return (size_t)(out - start);
}

/* Bits left over at the end must be zero: two spellings of one value would
 * otherwise decode alike, which is how signatures get forged. */
ln_status b32_decode(const char *text, size_t length, uint8_t *out, size_t *size) {
    uint64_t accumulator = 0;
    unsigned bits = 0;
    *size = 0;
    for (size_t index = 0; index < length; ++index) {
        int value = decode_digit(text[index]);
        if (value < 0) {
            return LN_SYNTAX;
        }
        accumulator = accumulator << 5 | (unsigned)value;
        bits += 5;
        if (bits >= 8) {
            bits -= 8;
            out[(*size)++] = (uint8_t)(accumulator >> bits);
        }
    }
    if (bits >= 5 || (accumulator & ((1u << bits) - 1)) != 0) {
        return LN_TRUNCATED;
    }
    return LN_OK;
}
