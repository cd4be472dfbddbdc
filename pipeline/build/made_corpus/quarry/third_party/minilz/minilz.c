/* minilz: byte-oriented LZ77 with a 64 kB window and a greedy parse.
 *
 * Stream: control byte C. C < 128: C + 1 literals follow. Otherwise a match of
 * (C & 127) + 4 bytes at the 16-bit little-endian distance that follows. */
#include <stdint.h>
#include <string.h>

#define HASH_BITS 12
#define MINIMUM_MATCH 4
#define MAXIMUM_MATCH (127 + MINIMUM_MATCH)
#define MAXIMUM_LITERALS 128

static uint32_t load32(const uint8_t *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint32_t hash4(const uint8_t *p) {
    return load32(p) * 2654435761u >> (32 - HASH_BITS);
}

static uint8_t *flush_literals(const uint8_t *from, const uint8_t *to, uint8_t *out) {
    while (from < to) {
        size_t run = (size_t)(to - from);
        if (run > MAXIMUM_LITERALS) run = MAXIMUM_LITERALS;
        *out++ = (uint8_t)(run - 1);
        memcpy(out, from, run);
        out += run;
        from += run;
    }
    return out;
}

/* `out` must hold size + size / 128 + 1 bytes. Returns how many were written. */
size_t minilz_compress(const uint8_t *in, size_t size, uint8_t *out) {
    uint32_t table[1 << HASH_BITS] = {0};
    const uint8_t *at = in, *literals = in, *const end = in + size;
    uint8_t *const start = out;
    while (end - at >= MINIMUM_MATCH) {
        uint32_t slot = hash4(at);
        const uint8_t *candidate = in + table[slot];
        table[slot] = (uint32_t)(at - in);
        if (candidate >= at || at - candidate > 65535 || load32(candidate) != load32(at)) {
            ++at;
            continue;
        }
        size_t length = MINIMUM_MATCH;
        while (length < MAXIMUM_MATCH && at + length < end && candidate[length] == at[length]) ++length;
        out = flush_literals(literals, at, out);
        size_t distance = (size_t)(at - candidate);
        *out++ = (uint8_t)(128 | (length - MINIMUM_MATCH));
        *out++ = (uint8_t)distance;
        *out++ = (uint8_t)(distance >> 8);
        at += length;
        literals = at;
    }
    return (size_t)(flush_literals(literals, end, out) - start);
}

/* Returns the number of bytes written, or (size_t)-1 for a damaged stream. */
size_t minilz_expand(const uint8_t *in, size_t size, uint8_t *out, size_t capacity) {
    const uint8_t *const end = in + size;
    size_t written = 0;
    while (in < end) {
        unsigned control = *in++;
        if (control < 128) {
            size_t run = control + 1u;
            if (run > (size_t)(end - in) || run > capacity - written) return (size_t)-1;
            memcpy(out + written, in, run);
            in += run;
            written += run;
            continue;
        }
        size_t length = (control & 127u) + MINIMUM_MATCH;
        if (end - in < 2) return (size_t)-1;
        size_t distance = in[0] | (size_t)in[1] << 8;
        in += 2;
        if (distance == 0 || distance > written || length > capacity - written) return (size_t)-1;
        for (size_t i = 0; i < length; ++i) out[written + i] = out[written + i - distance];
        written += length;
    }
    return written;
}
