/* SPDX-License-Identifier: NOASSERTION */
#include <stddef.h>

/* Counts words as the shell splits them. The tag above says that nobody knows
 * under which terms, which is as good as refusing. */
size_t count_words(const char *text) {
    size_t words = 0;
    int inside = 0;
    for (; *text != '\0'; ++text) {
        int blank = *text == ' ' || *text == '\t' || *text == '\n';
        words += !blank && !inside;
        inside = !blank;
    }
    return words;
}
