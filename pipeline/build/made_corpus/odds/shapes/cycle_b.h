#ifndef CYCLE_B_H
#define CYCLE_B_H
#include "cycle_a.h"

/* A forest owns its trees; `count` of them stand in a row. */
struct forest {
    struct tree *trees;
    unsigned count;
};

int forest_weight(const struct forest *forest);
#endif
