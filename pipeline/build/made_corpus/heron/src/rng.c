/* Counter-based random numbers: Philox 4x32 with ten rounds (Salmon et al., SC 2011).
 * Number i of stream s does not depend on any other, so that a computation may
 * be cut into any number of threads and still draw the same values. */
#include <math.h>
#include <stdint.h>

struct philox_counter {
    uint32_t word[4];
};

static const uint32_t multiplier_0 = 0xD2511F53u;
static const uint32_t multiplier_1 = 0xCD9E8D57u;

static uint32_t multiply_high_low(uint32_t a, uint32_t b, uint32_t *high) {
    uint64_t product = (uint64_t)a * b;
    *high = (uint32_t)(product >> 32);
    return (uint32_t)product;
}

static struct philox_counter philox_round(struct philox_counter c, uint32_t key_0, uint32_t key_1) {
    uint32_t high_0, high_1;
    uint32_t low_0 = multiply_high_low(multiplier_0, c.word[0], &high_0);
    uint32_t low_1 = multiply_high_low(multiplier_1, c.word[2], &high_1);
    struct philox_counter out = {{
        high_1 ^ c.word[1] ^ key_0,
        low_1,
        high_0 ^ c.word[3] ^ key_1,
        low_0,
    }};
    return out;
}

struct philox_counter heron_philox(uint64_t stream, uint64_t index, uint64_t seed) {
    struct philox_counter counter = {{
        (uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream, (uint32_t)(stream >> 32),
    }};
    uint32_t key_0 = (uint32_t)seed, key_1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        counter = philox_round(counter, key_0, key_1);
        key_0 += 0x9E3779B9u; /* the golden ratio */
        key_1 += 0xBB67AE85u; /* the square root of three, minus one */
    }
    return counter;
}

/* In [0, 1), with 53 random bits. */
double heron_uniform(struct philox_counter c) {
    uint64_t bits = (uint64_t)c.word[0] << 32 | c.word[1];
    return (double)(bits >> 11) * 0x1.0p-53;
}

/* Box and Muller. The uniform is taken from (0, 1], whose logarithm is finite. */
double heron_normal(struct philox_counter c) {
    double u = 1.0 - heron_uniform(c);
    double v = (double)c.word[2] * 0x1.0p-32;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
