/* This file is an amalgamation of the sources of odds, made for projects that
 * want to add one file and no build system. */
#include <stddef.h>

/* ---- from words.c ---- */
size_t odds_count(const char *text, char wanted) {
    size_t count = 0;
    for (; *text != '\0'; ++text) count += *text == wanted;
    return count;
}

/* ---- from clamp.c ---- */
int odds_clamp(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}
