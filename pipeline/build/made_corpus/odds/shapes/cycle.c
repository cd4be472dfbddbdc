#include "cycle_a.h"

int tree_weight(const struct tree *tree) {
    return tree->weight + (tree->children ? forest_weight(tree->children) : 0);
}

int forest_weight(const struct forest *forest) {
    int sum = 0;
    for (unsigned i = 0; i < forest->count; ++i) {
        sum += tree_weight(&forest->trees[i]);
    }
    return sum;
}
