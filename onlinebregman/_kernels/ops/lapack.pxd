cdef void dgemm(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a, int* lda, double* b,
                int* ldb, double* beta, double* c, int* ldc) noexcept nogil
cdef void dpotrf(char* uplo, int* n, double* a, int* lda, int* info) noexcept nogil
cdef void dpotri(char* uplo, int* n, double* a, int* lda, int* info) noexcept nogil
cdef void dsyevd(char* jobz, char* uplo, int* n, double* a, int* lda, double* w, double* work, int* lwork, int* iwork,
                 int* liwork, int* info) noexcept nogil
