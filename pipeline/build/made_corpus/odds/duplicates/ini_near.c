/*
 * SPDX-License-Identifier: MIT
 *
 * A reader for INI files. It calls back once per key, in file order, and keeps
 * nothing itself. Sections nest by dots: [server.tls] is the section "server.tls".
 */
#include <ctype.h>
#include <string.h>

#include "lantern/status.h"

#define NAME_LIMIT 128

typedef ln_status (*ini_handler)(void *user, const char *section, const char *key, const char *value);

struct reader {
    char section[NAME_LIMIT];
    ini_handler handler;
    void *user;
    int line;
};

static char *strip_blanks(char *text) {
    while (isspace((unsigned char)*text)) {
        ++text;
    }
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) {
        --end;
    }
    *end = '\0';
    return text;
}

/* A semicolon or hash starts a comment unless it stands inside double quotes. */
static void strip_comment(char *text) {
    int inside_quotes = 0;
    for (; *text != '\0'; ++text) {
        if (*text == '"') {
            inside_quotes = !inside_quotes;
        } else if (!inside_quotes && (*text == ';' || *text == '#')) {
            *text = '\0';
            return;
        }
    }
}

static ln_status read_section(struct reader *reader, char *text) {
    char *close = strchr(text, ']');
    if (close == NULL) {
        return LN_SYNTAX;
    }
    *close = '\0';
    const char *name = strip_blanks(text + 1);
    if (strlen(name) >= sizeof reader->section) {
        return LN_OVERFLOW;
    }
    strcpy(reader->section, name);
    return LN_OK;
}

static ln_status read_line(struct reader *reader, char *line) {
    strip_comment(line);
    char *text = strip_blanks(line);
    if (*text == '\0') {
        return LN_OK;
    }
    if (*text == '[') {
        return read_section(reader, text);
    }
    char *equals = strchr(text, '=');
    if (equals == NULL) {
        return LN_SYNTAX;
    }
    *equals = '\0';
    char *value = strip_blanks(equals + 1);
    size_t length = strlen(value);
    if (length >= 2 && value[0] == '"' && value[length - 1] == '"') {
        value[length - 1] = '\0';
        ++value;
    }
    return reader->handler(reader->user, reader->section, strip_blanks(text), value);
}

/* Parses `text` in place; it is modified. On failure `*line` is the offending line, from one. */
ln_status ln_ini_parse(char *text, ini_handler handler, void *user, int *line) {
    struct reader reader = {"", handler, user, 0};
    while (text != NULL && *text != '\0') {
        char *newline = strchr(text, '\n');
        if (newline != NULL) {
            *newline++ = '\0';
        }
        *line = ++reader.line;
        LN_TRY(read_line(&reader, text));
        text = newline;
    }
    return LN_OK;
}
