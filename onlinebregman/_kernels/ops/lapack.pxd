cdef void dgemm(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a, int* lda, double* b,
                int* ldb, double* beta, double* c, int* ldc) noexcept nogil
cdef void dgemv(char* trans, int* m, int* n, double* alpha, double* a, int* lda, double* x, int* incx, double* beta,
                double* y, int* incy) noexcept nogil
cdef void dsyrk(char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda, double* beta, double* c,
                int* ldc) noexcept nogil
cdef void dpotrf(char* uplo, int* n, double* a, int* lda, int* info) noexcept nogil
cdef void dpotri(char* uplo, int* n, double* a, int* lda, int* info) noexcept nogil
cdef void dpotrs(char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* info) noexcept nogil
cdef void dsyevd(char* jobz, char* uplo, int* n, double* a, int* lda, double* w, double* work, int* lwork, int* iwork,
                 int* liwork, int* info) noexcept nogil
