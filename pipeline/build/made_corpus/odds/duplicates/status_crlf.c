// SPDX-License-Identifier: MIT
#include "lantern/status.h"

static const char *const names[] = {
    [LN_OK] = "ok",
    [LN_NO_MEMORY] = "out of memory",
    [LN_BAD_ARGUMENT] = "bad argument",
    [LN_TRUNCATED] = "input ends too early",
    [LN_SYNTAX] = "syntax error",
    [LN_NOT_FOUND] = "not found",
    [LN_OVERFLOW] = "value does not fit",
};

const char *ln_status_name(ln_status status) {
    unsigned index = (unsigned)status;
    if (index >= sizeof names / sizeof names[0]) {
        return "unknown status";
    }
    return names[index];
}
