/* SPDX-License-Identifier: MIT */
#include "lantern/ring.h"

typedef ln_ring_u16 ring_type;
typedef uint16_t element;

#define METHOD(name) ln_ring_u16_##name

static bool is_power_of_two(uint32_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

bool METHOD(init)(ring_type *ring, element *slots, uint32_t capacity) {
    if (!is_power_of_two(capacity)) {
        return false;
    }
    ring->slots = slots;
    ring->mask = capacity - 1;
    ring->head = 0;
    ring->tail = 0;
    return true;
}

static uint32_t count(const ring_type *ring) {
    return ring->head - ring->tail;
}

bool METHOD(push)(ring_type *ring, element value) {
    if (count(ring) > ring->mask) {
        return false;
    }
    ring->slots[ring->head & ring->mask] = value;
    ring->head = ring->head + 1;
    return true;
}

bool METHOD(pop)(ring_type *ring, element *value) {
    if (count(ring) == 0) {
        return false;
    }
    *value = ring->slots[ring->tail & ring->mask];
    ring->tail = ring->tail + 1;
    return true;
}

size_t METHOD(drain)(ring_type *ring, element *out, size_t limit) {
    size_t taken = 0;
    while (taken < limit && METHOD(pop)(ring, &out[taken])) {
        ++taken;
    }
    return taken;
}
