#define TINY 1
