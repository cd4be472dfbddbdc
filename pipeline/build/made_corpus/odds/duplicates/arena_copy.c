// SPDX-License-Identifier: MIT
// Copyright (c) 2023 The Lantern Authors

#include "lantern/arena.h"

#include <stdlib.h>
#include <string.h>

#define MINIMUM_BLOCK_SIZE 256u

struct ln_arena_block {
    struct ln_arena_block *previous;
    size_t capacity;
    size_t used;
    unsigned char bytes[];
};

static size_t round_up_to_power_of_two(size_t value) {
    size_t result = MINIMUM_BLOCK_SIZE;
    while (result < value) {
        result <<= 1;
    }
    return result;
}

void ln_arena_init(ln_arena *arena, size_t first_block_size) {
    arena->head = NULL;
    arena->next_block_size = round_up_to_power_of_two(first_block_size);
    arena->total_allocated = 0;
}

void ln_arena_free(ln_arena *arena) {
    struct ln_arena_block *block = arena->head;
    while (block != NULL) {
        struct ln_arena_block *previous = block->previous;
        free(block);
        block = previous;
    }
    arena->head = NULL;
    arena->total_allocated = 0;
}

/* A request larger than the next block gets a block of its own size, so that
 * one big string does not quadruple every block that follows. */
static struct ln_arena_block *grow(ln_arena *arena, size_t at_least) {
    size_t capacity = arena->next_block_size;
    if (capacity < at_least) {
        capacity = round_up_to_power_of_two(at_least);
    } else {
        arena->next_block_size <<= 1;
    }
    struct ln_arena_block *block = malloc(sizeof *block + capacity);
    if (block == NULL) {
        return NULL;
    }
    block->previous = arena->head;
    block->capacity = capacity;
    block->used = 0;
    arena->head = block;
    return block;
}

static size_t padding_for(const unsigned char *address, size_t alignment) {
    uintptr_t misaligned = (uintptr_t)address & (alignment - 1);
    return misaligned == 0 ? 0 : alignment - misaligned;
}

void *ln_arena_alloc(ln_arena *arena, size_t size, size_t alignment) {
    struct ln_arena_block *block = arena->head;
    size_t padding = block == NULL ? 0 : padding_for(block->bytes + block->used, alignment);
    if (block == NULL || block->capacity - block->used < size + padding) {
        block = grow(arena, size + alignment);
        if (block == NULL) {
            return NULL;
        }
        padding = padding_for(block->bytes, alignment);
    }
    void *result = block->bytes + block->used + padding;
    block->used += padding + size;
    arena->total_allocated += padding + size;
    return result;
}

char *ln_arena_strndup(ln_arena *arena, const char *text, size_t length) {
    char *copy = ln_arena_alloc(arena, length + 1, 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

ln_arena_mark ln_arena_save(const ln_arena *arena) {
    ln_arena_mark mark = {arena->head, arena->head == NULL ? 0 : arena->head->used};
    return mark;
}

void ln_arena_restore(ln_arena *arena, ln_arena_mark mark) {
    while (arena->head != mark.block) {
        struct ln_arena_block *dead = arena->head;
        arena->total_allocated -= dead->used;
        arena->head = dead->previous;
        free(dead);
    }
    if (arena->head != NULL) {
        arena->total_allocated -= arena->head->used - mark.used;
        arena->head->used = mark.used;
    }
}
