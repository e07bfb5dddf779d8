/* Random Fourier features: cosines by a polynomial that compilers vectorise, the same on every processor. */
#ifndef ONLINEBREGMAN_FOURIER_H
#define ONLINEBREGMAN_FOURIER_H

#include "row.h"

/* z = scale cos(2 pi z), within about 1e-15 times the scale, as long as z has digits after the decimal point */
OB_CLONES static void ob_cosines(double *z, double scale, ptrdiff_t n) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double turn = z[i] - ((z[i] + magic) - magic); /* between -1/2 and 1/2 */
        const double f = fabs(turn) - 0.25;                  /* cos(2 pi turn) = -sin(2 pi f) */
        const double u = f * f;
        /* -sin(2 pi f) / f by powers of f^2 */
        double p = -0.0011309237482517963;
        p = p * u + 0.012031585942120627;
        p = p * u - 0.10422916220813984;
        p = p * u + 0.7181223017785006;
        p = p * u - 3.819952584848282;
        p = p * u + 15.09464257682299;
        p = p * u - 42.058693944897655;
        p = p * u + 76.70585975306139;
        p = p * u - 81.60524927607506;
        p = p * u + 41.34170224039976;
        p = p * u - 6.283185307179586;
        z[i] = scale * (p * f);
    }
}

#endif
