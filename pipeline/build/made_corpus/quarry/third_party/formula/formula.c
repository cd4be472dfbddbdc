/* formula: a recursive-descent calculator. Copied in for the command-line tool.
 * Nobody wrote down where it came from. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

struct state {
    const char *at;
    int failed;
};

static double expression(struct state *s);

static void blanks(struct state *s) {
    while (isspace((unsigned char)*s->at)) s->at++;
}

static double factor(struct state *s) {
    blanks(s);
    if (*s->at == '-') {
        s->at++;
        return -factor(s);
    }
    if (*s->at == '(') {
        s->at++;
        double value = expression(s);
        blanks(s);
        if (*s->at++ != ')') s->failed = 1;
        return value;
    }
    char *end;
    double value = strtod(s->at, &end);
    if (end == s->at) s->failed = 1;
    s->at = end;
    return value;
}

static double power(struct state *s) {
    double base = factor(s);
    blanks(s);
    if (*s->at != '^') return base;
    s->at++;
    return pow(base, power(s));
}

static double term(struct state *s) {
    double value = power(s);
    for (;;) {
        blanks(s);
        if (*s->at == '*') {
            s->at++;
            value *= power(s);
        } else if (*s->at == '/') {
            s->at++;
            value /= power(s);
        } else {
            return value;
        }
    }
}

static double expression(struct state *s) {
    double value = term(s);
    for (;;) {
        blanks(s);
        if (*s->at == '+') {
            s->at++;
            value += term(s);
        } else if (*s->at == '-') {
            s->at++;
            value -= term(s);
        } else {
            return value;
        }
    }
}

double formula_evaluate(const char *text, int *failed) {
    struct state s = {text, 0};
    double value = expression(&s);
    *failed = s.failed || *s.at != '\0';
    return value;
}
