/*
 * Configuration of the mirror service.
 *
 * Maintainer address: mirror-team@odds-corpus.net. Placeholders such as
 * someone@example.com stay as they are.
 */
#include <string.h>

static const char *const upstreams[] = {
    "https://9.9.9.9/archive",     /* a public address */
    "http://127.0.0.1:8080/cache", /* loopback stays */
    "http://192.168.4.20/lan",     /* private stays */
    "http://203.0.113.9/manual",   /* documentation range stays */
};

static const char config_path[] = "/home/mirror/etc/mirror.conf";
static const char library_version[] = "4.2.0.17";

const char *mirror_upstream(unsigned index) {
    return index < sizeof upstreams / sizeof upstreams[0] ? upstreams[index] : NULL;
}

int mirror_is_default_config(const char *path) {
    return strcmp(path, config_path) == 0 || strcmp(path, library_version) == 0;
}
