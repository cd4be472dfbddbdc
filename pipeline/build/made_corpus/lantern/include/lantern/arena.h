/* SPDX-License-Identifier: MIT */
/* Copyright (c) 2023 The Lantern Authors */
#ifndef LANTERN_ARENA_H
#define LANTERN_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "lantern/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A bump allocator. Memory is handed out from blocks that double in size and
 * is given back all at once. An arena is not thread safe: give each thread its
 * own and merge the results.
 */
struct ln_arena_block;

typedef struct ln_arena {
    struct ln_arena_block *head; /* newest block, the one that is bumped */
    size_t next_block_size;      /* bytes, always a power of two */
    size_t total_allocated;      /* bytes handed to callers, padding included */
} ln_arena;

/* A position to which an arena can be rewound. */
typedef struct ln_arena_mark {
    struct ln_arena_block *block;
    size_t used;
} ln_arena_mark;

void ln_arena_init(ln_arena *arena, size_t first_block_size);
void ln_arena_free(ln_arena *arena);

/* Returns NULL when the system is out of memory. `alignment` must be a power of two. */
void *ln_arena_alloc(ln_arena *arena, size_t size, size_t alignment);

/* Copies `length` bytes and adds a terminating zero. */
char *ln_arena_strndup(ln_arena *arena, const char *text, size_t length);

ln_arena_mark ln_arena_save(const ln_arena *arena);
void ln_arena_restore(ln_arena *arena, ln_arena_mark mark);

#define LN_NEW(arena, type) ((type *)ln_arena_alloc((arena), sizeof(type), _Alignof(type)))

#ifdef __cplusplus
}
#endif

#endif
