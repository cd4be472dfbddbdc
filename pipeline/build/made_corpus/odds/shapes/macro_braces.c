/* Braces that only the preprocessor can see. */
#include <stdio.h>

#define BEGIN {
#define END }
#define UNLESS(condition) if (!(condition))
#define FOR_EACH(type, name, array) \
    for (type *name = (array); name < (array) + sizeof(array) / sizeof *(array); ++name)
#define TEST_CASE(name) static void test_##name(void) BEGIN printf("%s\n", #name);

TEST_CASE(addition)
    int sum = 2 + 2;
    UNLESS(sum == 4) printf("arithmetic is broken\n");
END

TEST_CASE(iteration)
    int values[] = {3, 1, 4, 1, 5};
    int total = 0;
    FOR_EACH(int, value, values) total += *value;
    UNLESS(total == 14) printf("%d\n", total);
END

int main(void) BEGIN
    test_addition();
    test_iteration();
    return 0;
END
