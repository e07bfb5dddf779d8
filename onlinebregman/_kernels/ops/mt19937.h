/* Random numbers of the Mersenne Twister (Matsumoto, Nishimura 1998), those of numpy.random.RandomState.
 */
#ifndef ONLINEBREGMAN_MT19937_H
#define ONLINEBREGMAN_MT19937_H

#include <stddef.h>
#include <stdint.h>

#include "vector.h"

#define OB_TWISTER_SIZE 624
#define OB_TWISTER_LAG 397

typedef struct {
    uint32_t key[OB_TWISTER_SIZE];
    int32_t pos; /* of the next word, at most OB_TWISTER_SIZE */
} ob_twister;

/* In three loops, each of which compilers can vectorise */
static inline void ob_twist(ob_twister *state) {
    uint32_t *const key = state->key;
    int i = 0;
#define OB_MIX(next, far)                                                                                              \
    {                                                                                                                  \
        const uint32_t y = (key[i] & 0x80000000u) | (key[next] & 0x7fffffffu);                                         \
        key[i] = key[far] ^ (y >> 1) ^ ((0u - (y & 1u)) & 0x9908b0dfu);                                                \
    }
    for (; i < OB_TWISTER_SIZE - OB_TWISTER_LAG; ++i)
        OB_MIX(i + 1, i + OB_TWISTER_LAG)
    for (; i < OB_TWISTER_SIZE - 1; ++i)
        OB_MIX(i + 1, i + OB_TWISTER_LAG - OB_TWISTER_SIZE)
    OB_MIX(0, OB_TWISTER_LAG - 1)
#undef OB_MIX
    state->pos = 0;
}

static inline uint32_t ob_next_word(ob_twister *state) {
    if (state->pos >= OB_TWISTER_SIZE)
        ob_twist(state);
    uint32_t y = state->key[state->pos++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* A number of 53 bits, at least 0 and below 1 */
static inline double ob_next_uniform(ob_twister *state) {
    const uint32_t a = ob_next_word(state) >> 5, b = ob_next_word(state) >> 6;
    return (a * 67108864.0 + b) / 9007199254740992.0;
}

#endif
