/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef int (*compare_function)(const void *left, const void *right);

struct run {
    size_t start;
    size_t length;
};

static void reverse_elements(char *base, size_t count, size_t width, char *spare) {
    for (size_t low = 0, high = count - 1; low < high; ++low, --high) {
        memcpy(spare, base + low * width, width);
        memcpy(base + low * width, base + high * width, width);
        memcpy(base + high * width, spare, width);
    }
}

/* A strictly falling run is reversed; equal elements end it, which keeps the sort stable. */
static size_t next_run(char *base, size_t count, size_t width, compare_function compare, char *spare) {
    if (count < 2) {
        return count;
    }
    size_t length = 2;
    if (compare(base, base + width) > 0) {
        while (length < count && compare(base + (length - 1) * width, base + length * width) > 0) {
            ++length;
        }
        reverse_elements(base, length, width, spare);
    } else {
        while (length < count && compare(base + (length - 1) * width, base + length * width) <= 0) {
            ++length;
        }
    }
    return length;
}

static void merge(char *base, size_t left, size_t right, size_t width, compare_function compare, char *spare) {
    memcpy(spare, base, left * width);
    char *out = base, *from_right = base + left * width, *from_left = spare;
    char *const end_left = spare + left * width, *const end_right = base + (left + right) * width;
    while (from_left < end_left && from_right < end_right) {
        if (compare(from_left, from_right) <= 0) {
            memcpy(out, from_left, width);
            from_left += width;
        } else {
            memcpy(out, from_right, width);
            from_right += width;
        }
        out += width;
    }
    memcpy(out, from_left, (size_t)(end_left - from_left));
}

int sort_by_runs(void *base, size_t count, size_t width, compare_function compare) {
    struct run stack[64];
    size_t depth = 0, at = 0;
    char *spare = malloc((count + 1) * width);
    if (spare == NULL) {
        return -1;
    }
    while (at < count) {
        size_t length = next_run((char *)base + at * width, count - at, width, compare, spare);
        stack[depth++] = (struct run){at, length};
        at += length;
        while (depth > 1 && (stack[depth - 2].length <= stack[depth - 1].length || at == count)) {
            struct run *left = &stack[depth - 2], *right = &stack[depth - 1];
            merge((char *)base + left->start * width, left->length, right->length, width, compare, spare);
            left->length += right->length;
            --depth;
        }
    }
    free(spare);
    return 0;
}
