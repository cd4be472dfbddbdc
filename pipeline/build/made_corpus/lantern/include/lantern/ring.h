/* SPDX-License-Identifier: MIT */
#ifndef LANTERN_RING_H
#define LANTERN_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fixed-capacity queues for interrupt handlers: one producer, one consumer, no
 * locks. Capacity is a power of two and indices run freely, so that "full" and
 * "empty" differ without a spare slot. */
typedef struct ln_ring_u16 {
    uint16_t *slots;
    uint32_t mask;
    volatile uint32_t head;
    volatile uint32_t tail;
} ln_ring_u16;

typedef struct ln_ring_u32 {
    uint32_t *slots;
    uint32_t mask;
    volatile uint32_t head;
    volatile uint32_t tail;
    uint32_t dropped;
} ln_ring_u32;

bool ln_ring_u16_init(ln_ring_u16 *ring, uint16_t *slots, uint32_t capacity);
bool ln_ring_u16_push(ln_ring_u16 *ring, uint16_t value);
bool ln_ring_u16_pop(ln_ring_u16 *ring, uint16_t *value);
size_t ln_ring_u16_drain(ln_ring_u16 *ring, uint16_t *out, size_t limit);

bool ln_ring_u32_init(ln_ring_u32 *ring, uint32_t *slots, uint32_t capacity);
bool ln_ring_u32_push(ln_ring_u32 *ring, uint32_t value);
bool ln_ring_u32_pop(ln_ring_u32 *ring, uint32_t *value);
size_t ln_ring_u32_drain(ln_ring_u32 *ring, uint32_t *out, size_t limit);

#endif
