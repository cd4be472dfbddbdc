#ifndef LANTERN_LOG_HPP
#define LANTERN_LOG_HPP

#include <atomic>
#include <cstdio>
#include <sstream>
#include <string>

// Logging is compiled away below LANTERN_LOG_LEVEL; above it, the cost of a
// disabled message is one relaxed load.
#ifndef LANTERN_LOG_LEVEL
#  ifdef NDEBUG
#    define LANTERN_LOG_LEVEL 2
#  else
#    define LANTERN_LOG_LEVEL 0
#  endif
#endif

#define LANTERN_LEVELS(X) \
    X(debug, 0)           \
    X(info, 1)            \
    X(warning, 2)         \
    X(error, 3)

namespace lantern {
namespace log {

enum class Level : int {
#define LANTERN_ENUMERATOR(name, value) name = value,
    LANTERN_LEVELS(LANTERN_ENUMERATOR)
#undef LANTERN_ENUMERATOR
};

inline const char* name_of(Level level) {
    switch (level) {
#define LANTERN_CASE(name, value) \
    case Level::name:             \
        return #name;
        LANTERN_LEVELS(LANTERN_CASE)
#undef LANTERN_CASE
    }
    return "?";
}

inline std::atomic<int>& threshold() {
    static std::atomic<int> value{LANTERN_LOG_LEVEL};
    return value;
}

class Message {
public:
    Message(Level level, const char* file, int line) {
        stream_ << '[' << name_of(level) << "] " << file << ':' << line << ": ";
    }
    ~Message() {
        stream_ << '\n';
        const std::string text = stream_.str();
        std::fwrite(text.data(), 1, text.size(), stderr);
    }
    std::ostream& stream() { return stream_; }

private:
    std::ostringstream stream_;
};

}  // namespace log
}  // namespace lantern

#define LANTERN_LOG(level)                                                                     \
    if (static_cast<int>(::lantern::log::Level::level) < LANTERN_LOG_LEVEL ||                  \
        static_cast<int>(::lantern::log::Level::level) < ::lantern::log::threshold().load()) { \
    } else                                                                                     \
        ::lantern::log::Message(::lantern::log::Level::level, __FILE__, __LINE__).stream()

#endif  // LANTERN_LOG_HPP
