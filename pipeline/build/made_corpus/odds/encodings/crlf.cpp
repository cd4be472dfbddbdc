// Line ends are CR LF, also inside the raw string.
#include <string_view>

namespace templates {

constexpr std::string_view kPage = R"html(<!doctype html>
<title>{{title}}</title>
<p>{{body}}</p>
)html";

constexpr int count_lines(std::string_view text) {
    int lines = 0;
    for (char character : text) lines += character == '\n';
    return lines;
}

static_assert(count_lines("a\nb\n") == 2);

}  // namespace templates
