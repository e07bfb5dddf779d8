/* A flag that only one thread at a time can hold. */
#ifndef OB_CLAIM_H
#define OB_CLAIM_H

#if defined(_MSC_VER)
#include <intrin.h>
static inline int ob_claim(volatile long *flag) { return _InterlockedExchange(flag, 1) == 0; }
static inline void ob_release(volatile long *flag) { _InterlockedExchange(flag, 0); }
#else
static inline int ob_claim(volatile long *flag) { return __atomic_exchange_n(flag, 1, __ATOMIC_ACQUIRE) == 0; }
static inline void ob_release(volatile long *flag) { __atomic_store_n(flag, 0, __ATOMIC_RELEASE); }
#endif

#endif
