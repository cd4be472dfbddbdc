// The two branches of each #if open a different number of braces: neither
// grammar nor reader can balance them without choosing one.
#include <cstdio>
#include <mutex>

namespace odds {

#ifdef ODDS_THREADS
std::mutex output_mutex;
void print_line(const char* text) {
    std::lock_guard<std::mutex> guard(output_mutex);
    if (text != nullptr) {
#else
void print_line(const char* text) {
    {
#endif
        std::puts(text);
    }
}

int classify(int value) {
#if defined(ODDS_SIGNED)
    if (value < 0) {
        return -1;
    } else
#endif
    if (value == 0) {
        return 0;
#ifdef ODDS_STRICT
    } else if (value > 1000) {
        return 2;
#endif
    }
    return 1;
}

#ifdef ODDS_C_LINKAGE
extern "C" {
#endif

int odds_version(void) {
    return 3;
}

#ifdef ODDS_C_LINKAGE
}
#endif

}  // namespace odds
