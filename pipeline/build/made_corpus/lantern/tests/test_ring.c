#include <assert.h>
#include <stdio.h>

#include "lantern/ring.h"

static void a_ring_refuses_a_capacity_that_is_no_power_of_two(void) {
    uint16_t slots[6];
    ln_ring_u16 ring;
    assert(!ln_ring_u16_init(&ring, slots, 6));
    assert(!ln_ring_u16_init(&ring, slots, 0));
    assert(ln_ring_u16_init(&ring, slots, 4));
}

static void a_full_ring_counts_what_it_lost(void) {
    uint32_t slots[2];
    ln_ring_u32 ring;
    assert(ln_ring_u32_init(&ring, slots, 2));
    for (uint32_t value = 0; value < 5; ++value) {
        bool pushed = ln_ring_u32_push(&ring, value);
        assert(pushed == (value < 2));
    }
    assert(ring.dropped == 3);
}

static void values_come_out_in_the_order_they_went_in(void) {
    uint16_t slots[8], out[8];
    ln_ring_u16 ring;
    ln_ring_u16_init(&ring, slots, 8);
    for (unsigned round = 0; round < 100; ++round) {
        for (uint16_t value = 0; value < 5; ++value) {
            assert(ln_ring_u16_push(&ring, (uint16_t)(round * 5 + value)));
        }
        assert(ln_ring_u16_drain(&ring, out, 8) == 5);
        for (uint16_t value = 0; value < 5; ++value) {
            assert(out[value] == (uint16_t)(round * 5 + value));
        }
    }
}

int main(void) {
    a_ring_refuses_a_capacity_that_is_no_power_of_two();
    a_full_ring_counts_what_it_lost();
    values_come_out_in_the_order_they_went_in();
    puts("ring: ok");
    return 0;
}
