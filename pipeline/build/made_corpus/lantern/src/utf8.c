/* SPDX-License-Identifier: MIT */
#include "lantern/utf8.h"

/* Bounds of the second byte by first byte. The rest of a sequence is always
 * 80..BF; only E0, ED, F0 and F4 narrow the second byte further, to exclude
 * overlong forms, surrogates and values above U+10FFFF. */
typedef struct lead {
    unsigned char length;
    unsigned char low;
    unsigned char high;
} lead;

static lead classify(unsigned char byte) {
    if (byte < 0x80) return (lead){1, 0, 0};
    if (byte < 0xC2) return (lead){0, 0, 0};
    if (byte < 0xE0) return (lead){2, 0x80, 0xBF};
    if (byte == 0xE0) return (lead){3, 0xA0, 0xBF};
    if (byte == 0xED) return (lead){3, 0x80, 0x9F};
    if (byte < 0xF0) return (lead){3, 0x80, 0xBF};
    if (byte == 0xF0) return (lead){4, 0x90, 0xBF};
    if (byte < 0xF4) return (lead){4, 0x80, 0xBF};
    if (byte == 0xF4) return (lead){4, 0x80, 0x8F};
    return (lead){0, 0, 0};
}

ln_status ln_utf8_next(const unsigned char **cursor, const unsigned char *end, uint32_t *code_point) {
    const unsigned char *at = *cursor;
    if (at == end) {
        return LN_NOT_FOUND;
    }
    lead first = classify(*at);
    *code_point = LN_REPLACEMENT_CHARACTER;
    *cursor = at + 1;
    if (first.length == 0) {
        return LN_SYNTAX;
    }
    if (first.length == 1) {
        *code_point = *at;
        return LN_OK;
    }
    static const unsigned char payload_mask[] = {0, 0, 0x1F, 0x0F, 0x07};
    uint32_t value = *at & payload_mask[first.length];
    for (unsigned index = 1; index < first.length; ++index) {
        if (at + index == end) {
            return LN_TRUNCATED;
        }
        unsigned char low = index == 1 ? first.low : 0x80;
        unsigned char high = index == 1 ? first.high : 0xBF;
        if (at[index] < low || at[index] > high) {
            return LN_SYNTAX;
        }
        value = value << 6 | (at[index] & 0x3Fu);
        *cursor = at + index + 1;
    }
    *code_point = value;
    return LN_OK;
}

size_t ln_utf8_encode(uint32_t code_point, unsigned char out[4]) {
    if (code_point < 0x80) {
        out[0] = (unsigned char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (unsigned char)(0xC0 | code_point >> 6);
        out[1] = (unsigned char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point >= 0xD800 && code_point <= 0xDFFF) {
        return 0;
    }
    if (code_point < 0x10000) {
        out[0] = (unsigned char)(0xE0 | code_point >> 12);
        out[1] = (unsigned char)(0x80 | (code_point >> 6 & 0x3F));
        out[2] = (unsigned char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    if (code_point > 0x10FFFF) {
        return 0;
    }
    out[0] = (unsigned char)(0xF0 | code_point >> 18);
    out[1] = (unsigned char)(0x80 | (code_point >> 12 & 0x3F));
    out[2] = (unsigned char)(0x80 | (code_point >> 6 & 0x3F));
    out[3] = (unsigned char)(0x80 | (code_point & 0x3F));
    return 4;
}

size_t ln_utf8_length(const unsigned char *text, size_t num_bytes) {
    const unsigned char *cursor = text;
    const unsigned char *end = text + num_bytes;
    size_t length = 0;
    uint32_t ignored;
    while (cursor != end) {
        ln_utf8_next(&cursor, end, &ignored);
        ++length;
    }
    return length;
}
