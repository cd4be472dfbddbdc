#include <string_view>

#include "lantern/small_vector.hpp"

namespace lantern {

namespace {

// One '[...]' of a pattern. Returns the index after the closing bracket, or npos
// when there is none, in which case the bracket is an ordinary character.
std::size_t match_class(std::string_view pattern, std::size_t at, char character, bool* matched) {
    std::size_t index = at + 1;
    const bool negated = index < pattern.size() && (pattern[index] == '!' || pattern[index] == '^');
    if (negated) ++index;
    bool found = false;
    bool first = true;
    while (index < pattern.size() && (pattern[index] != ']' || first)) {
        first = false;
        const char low = pattern[index];
        if (index + 2 < pattern.size() && pattern[index + 1] == '-' && pattern[index + 2] != ']') {
            found = found || (low <= character && character <= pattern[index + 2]);
            index += 3;
        } else {
            found = found || low == character;
            ++index;
        }
    }
    if (index >= pattern.size()) return std::string_view::npos;
    *matched = found != negated;
    return index + 1;
}

}  // namespace

/// Shell-style matching of `*`, `?` and `[...]`. Linear in the text for every
/// pattern: only the last star is ever returned to, because an earlier one can
/// match nothing that the later one could not.
bool glob_matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0;
    std::size_t star = std::string_view::npos, resume = 0;
    while (t < text.size()) {
        bool matched = false;
        std::size_t after = p + 1;
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
            continue;
        }
        if (p < pattern.size() && pattern[p] == '[') {
            after = match_class(pattern, p, text[t], &matched);
            if (after == std::string_view::npos) {
                after = p + 1;
                matched = text[t] == '[';
            }
        } else if (p < pattern.size()) {
            matched = pattern[p] == '?' || pattern[p] == text[t];
        }
        if (matched) {
            p = after;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

SmallVector<std::string_view, 8> split(std::string_view text, char separator) {
    SmallVector<std::string_view, 8> pieces;
    while (true) {
        const std::size_t at = text.find(separator);
        pieces.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return pieces;
        text.remove_prefix(at + 1);
    }
}

}  // namespace lantern
