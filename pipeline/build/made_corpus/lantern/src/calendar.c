// SPDX-License-Identifier: MIT
// Civil dates without time zones, after the proleptic Gregorian calendar.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lantern/status.h"

typedef struct ln_date {
    int32_t year;
    uint8_t month; /* 1..12 */
    uint8_t day;   /* 1..31 */
} ln_date;

static bool is_leap(int32_t year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned days_in_month(int32_t year, unsigned month) {
    static const uint8_t lengths[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return lengths[month - 1] + (month == 2 && is_leap(year));
}

/* Days since 1970-01-01. Counting years from March puts the leap day last, so
 * that the month lengths follow one linear formula. */
int64_t ln_date_to_days(ln_date date) {
    int64_t year = date.year - (date.month <= 2);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t shifted_month = (date.month + 9) % 12;
    int64_t day_of_year = (153 * shifted_month + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

ln_date ln_date_from_days(int64_t days) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;
    ln_date date;
    date.day = (uint8_t)(day_of_year - (153 * shifted_month + 2) / 5 + 1);
    date.month = (uint8_t)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    date.year = (int32_t)(year_of_era + era * 400 + (date.month <= 2));
    return date;
}

/* Monday is 0, as in ISO 8601. */
unsigned ln_weekday(int64_t days) {
    return (unsigned)(((days + 3) % 7 + 7) % 7);
}

ln_status ln_date_parse(const char *text, ln_date *date) {
    int year;
    unsigned month, day;
    char rest;
    if (sscanf(text, "%d-%2u-%2u%c", &year, &month, &day, &rest) != 3) {
        return LN_SYNTAX;
    }
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) {
        return LN_BAD_ARGUMENT;
    }
    date->year = year;
    date->month = (uint8_t)month;
    date->day = (uint8_t)day;
    return LN_OK;
}
