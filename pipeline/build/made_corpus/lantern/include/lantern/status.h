/* SPDX-License-Identifier: MIT */
/* Copyright (c) 2023 The Lantern Authors */
#ifndef LANTERN_STATUS_H
#define LANTERN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Every fallible function of the C layer returns one of these. Zero is success,
 * so that `if (ln_do_something(...))` reads as "if it went wrong". */
typedef enum ln_status {
    LN_OK = 0,
    LN_NO_MEMORY,
    LN_BAD_ARGUMENT,
    LN_TRUNCATED,
    LN_SYNTAX,
    LN_NOT_FOUND,
    LN_OVERFLOW
} ln_status;

/* A static, English, lower-case description. Never NULL, never freed. */
const char *ln_status_name(ln_status status);

/* Propagate a failure to the caller. Evaluates its argument once. */
#define LN_TRY(expression)                    \
    do {                                      \
        ln_status ln_try_ = (expression);     \
        if (ln_try_ != LN_OK) return ln_try_; \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif /* LANTERN_STATUS_H */
