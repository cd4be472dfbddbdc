/* partition.c - three-way partition around a pivot, and selection by rank
 *
 * Elements that equal the pivot end up between the two other groups, so that an
 * array of one repeated value is done in a single pass.
 */
#include <stddef.h>

struct bounds {
    size_t below; /* elements smaller than the pivot */
    size_t above; /* index of the first element that is larger */
};

static void exchange(double *left, double *right) {
    double kept = *left;
    *left = *right;
    *right = kept;
}

/* Dijkstra's Dutch national flag: [0, below) < pivot, [below, at) == pivot, [above, count) > pivot. */
struct bounds three_way_partition(double *values, size_t count, double pivot) {
    struct bounds bounds = {0, count};
    size_t at = 0;
    while (at < bounds.above) {
        if (values[at] < pivot) {
            exchange(&values[at++], &values[bounds.below++]);
        } else if (values[at] > pivot) {
            exchange(&values[at], &values[--bounds.above]);
        } else {
            ++at;
        }
    }
    return bounds;
}

static double median_of_three(double a, double b, double c) {
    if (a > b) exchange(&a, &b);
    if (b > c) exchange(&b, &c);
    return a > b ? a : b;
}

/* The element that would stand at `rank` if the array were sorted. Reorders it. */
double select_by_rank(double *values, size_t count, size_t rank) {
    while (count > 1) {
        double pivot = median_of_three(values[0], values[count / 2], values[count - 1]);
        struct bounds bounds = three_way_partition(values, count, pivot);
        if (rank < bounds.below) {
            count = bounds.below;
        } else if (rank < bounds.above) {
            return pivot;
        } else {
            values += bounds.above;
            count -= bounds.above;
            rank -= bounds.above;
        }
    }
    return values[0];
}
