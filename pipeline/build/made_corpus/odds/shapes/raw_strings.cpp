#include <string>

// Text that looks like code, and code that looks like text.
const char* const kShader = R"glsl(
#version 330 core
/* not a C++ comment " */
in vec2 uv; // nor this
out vec4 color;
void main() { color = vec4(uv, 0.0, 1.0); }
)glsl";

const char* const kPattern = R"(^\s*#\s*include\s+["<]([^">]+)[">]\s*$)";
const wchar_t* const kWide = LR"x()" )x";
const char* const kDelimited = R"end(a )" b )en" c)end";

std::string quote(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

int digits = 1'000'000 + 0b1010'0101 + 0xFF'FF;
char quote_character = '"', backslash = '\\';  // "unbalanced
