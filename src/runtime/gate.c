#include "runtime/gate.h"

void onv_gate_compare(onv_gate *gate, const char *what, uint64_t before, uint64_t after)
{
    enum { WHOLE = 10000 };
    onv_gate_row *row = &gate->rows[gate->n_rows++];
    /* 2^64 bytes times some thousands fit 128 bits. */
    unsigned __int128 most = (unsigned __int128)before * (WHOLE + gate->most_basis_points);
    *row = (onv_gate_row){what, before, after,
                          gate->has_most && (unsigned __int128)after * WHOLE > most};
    gate->exceeds |= row->exceeds;
}
