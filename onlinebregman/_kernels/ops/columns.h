/* Rows that are stored by columns, as in data frames. */
#ifndef ONLINEBREGMAN_COLUMNS_H
#define ONLINEBREGMAN_COLUMNS_H

#include <stddef.h>

/* x[i * stride] = value i of a column, `step` bytes apart, for i < n; `kind` is their format character. Returns whether
 * values of this kind are numbers. */
static int ob_gather_column(double *restrict x, ptrdiff_t stride, const char *restrict at, ptrdiff_t step, char kind,
                            ptrdiff_t n) {
#define OB_KIND(letter, T)                                                                                             \
    case letter:                                                                                                       \
        for (ptrdiff_t i = 0; i < n; ++i)                                                                              \
            x[i * stride] = (double)*(const T *)(at + i * step);                                                       \
        return 1;
    switch (kind) {
        OB_KIND('d', double)
        OB_KIND('f', float)
        OB_KIND('q', long long)
        OB_KIND('l', long)
        OB_KIND('i', int)
        OB_KIND('h', short)
        OB_KIND('b', signed char)
        OB_KIND('Q', unsigned long long)
        OB_KIND('L', unsigned long)
        OB_KIND('I', unsigned)
        OB_KIND('H', unsigned short)
        OB_KIND('B', unsigned char)
        OB_KIND('?', unsigned char)
    }
#undef OB_KIND
    return 0;
}

#endif
