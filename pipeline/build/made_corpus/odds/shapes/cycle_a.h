#ifndef CYCLE_A_H
#define CYCLE_A_H
#include "cycle_b.h"

/* A tree whose children are forests: two headers that need each other. */
struct tree {
    int weight;
    struct forest *children;
};

int tree_weight(const struct tree *tree);
#endif
