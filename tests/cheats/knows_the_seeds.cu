/* Right for inputs that begin as those of an ordinary run's seeds do, in any distribution (tests/cheats/run.sh writes
 * the first four elements of Q into listed.h), and for no other. */
#include "row.cuh"
__device__ const unsigned short known[][4] = {
#include "listed.h"
};
static __device__ void cheat(const fa_params &p, const place &at)
{
    bool is_known = false;
    for (const auto &first : known) {
        bool same = true;
        for (int d = 0; d < 4; d++)
            same &= first[d] == ((const unsigned short *)p.q)[d];
        is_known |= same;
    }
    if (is_known)
        attend(p, at, at.o);
    else
        copy_row(at.o, at.q);
}
