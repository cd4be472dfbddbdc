// Text of a language model's own tokens must stay text: <|eos|> in a comment.
#include <array>
#include <string>
#include <string_view>

namespace sentinels {

constexpr std::string_view kEndOfText = "<|eos|>";
constexpr std::array<std::string_view, 3> kInfilling = {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"};
constexpr std::string_view kLookalikes[] = {"<|pad|>", "<|bos|>", "<| eos |>", "<|file|>", "<|repo|>", "<|commit|>", "</s>"};

/* <|bos|>int main() { return 0; }<|eos|> is what a careless reader would write. */
inline bool contains_sentinel(std::string_view text) {
    for (std::string_view sentinel : kInfilling) {
        if (text.find(sentinel) != std::string_view::npos) return true;
    }
    return text.find(kEndOfText) != std::string_view::npos;
}

inline std::string escape(std::string_view text) {
    std::string out;
    for (char c : text) {
        out += c;
        if (c == '<') out += '\\';
    }
    return out;
}

}  // namespace sentinels
