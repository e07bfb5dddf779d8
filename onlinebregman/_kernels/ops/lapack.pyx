"""The routines of BLAS and LAPACK that the kernels call.

They are SciPy's. Cython takes seconds to read its 1,700 declarations, so only this module does.
"""

cimport scipy.linalg.cython_blas as blas
cimport scipy.linalg.cython_lapack as lapack


cdef void dgemm(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a, int* lda, double* b,
                int* ldb, double* beta, double* c, int* ldc) noexcept nogil:
    blas.dgemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)


cdef void dpotrf(char* uplo, int* n, double* a, int* lda, int* info) noexcept nogil:
    lapack.dpotrf(uplo, n, a, lda, info)


cdef void dpotri(char* uplo, int* n, double* a, int* lda, int* info) noexcept nogil:
    """Unblocked for small matrices, of which OpenBLAS's own `dpotri` wakes all threads."""
    if n[0] < 128:
        lapack.dtrti2(uplo, b"N", n, a, lda, info)
        lapack.dlauu2(uplo, n, a, lda, info)
    else:
        lapack.dpotri(uplo, n, a, lda, info)


cdef void dsyevd(char* jobz, char* uplo, int* n, double* a, int* lda, double* w, double* work, int* lwork, int* iwork,
                 int* liwork, int* info) noexcept nogil:
    lapack.dsyevd(jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork, info)
