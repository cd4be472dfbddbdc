/* Includes itself once, with the counter moved on: a legal trick. */
#ifndef SELF_INCLUDE_PASS
#  define SELF_INCLUDE_PASS 1
#  include "self_include.h"
#else
#  define SELF_INCLUDE_DONE 1
static inline int self_include_passes(void) {
    return SELF_INCLUDE_PASS + SELF_INCLUDE_DONE;
}
#endif
