/* Decompositions, and transforms. */
#include "aten/aten.h"

static const onv_aten_op ops[] = {
    {.name = "_fft_c2c", .in = "self", .grads = "a:"},
    {.name = "_fft_c2r", .in = "self", .grads = "a:"},
    {.name = "_fft_r2c", .in = "self", .grads = "a:a"},
    {.name = "_linalg_det", .in = "A", .grads = "a:aopq", .tape = "linalg_det"},
    {.name = "_linalg_eigh", .in = "A", .grads = "a:op"},
    {.name = "_linalg_slogdet", .in = "A", .grads = "a:aoqr"},
    {.name = "_linalg_solve_ex", .in = "A B", .grads = "ab:aopq"},
    {.name = "_linalg_svd", .in = "A", .grads = "a:opq"},
    {.name = "cholesky", .in = "self", .grads = "a:o"},
    {.name = "cholesky_inverse", .in = "self", .grads = "a:ao"},
    {.name = "cholesky_solve", .in = "self input2", .grads = "ab:abo"},
    {.name = "det", .in = "A", .grads = "a:a", .tape = "linalg_det"},
    {.name = "inverse", .in = "A", .grads = "a:o"},
    {.name = "linalg_cholesky", .in = "self", .grads = "a:o"},
    {.name = "linalg_cholesky_ex", .in = "self", .grads = "a:o"},
    {.name = "linalg_det", .in = "A", .grads = "a:a", .tape = "linalg_det"},
    {.name = "linalg_eig", .in = "self", .grads = "a:op"},
    {.name = "linalg_householder_product", .in = "input tau", .grads = "ab:abo"},
    {.name = "linalg_inv", .in = "A", .grads = "a:o"},
    {.name = "linalg_inv_ex", .in = "A", .grads = "a:o"},
    {.name = "linalg_lu_factor_ex", .in = "A", .grads = "a:op"},
    {.name = "linalg_matrix_exp", .in = "self", .grads = "a:a"},
    {.name = "linalg_qr", .in = "A", .grads = "a:op"},
    {.name = "linalg_solve", .in = "A B", .grads = "ab:ao"},
    {.name = "linalg_solve_triangular", .in = "self B", .grads = "ab:ao"},
    {.name = "matrix_exp", .in = "self", .grads = "a:a"},
    {.name = "triangular_solve", .in = "self A", .grads = "ab:abo"},
};

const onv_aten_family onv_aten_linalg = {ops, sizeof ops / sizeof ops[0]};
