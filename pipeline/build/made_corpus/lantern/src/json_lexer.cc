// SPDX-License-Identifier: MIT
// Copyright (c) 2024 The Lantern Authors
#include "lantern/json.hpp"

#include <cctype>

namespace lantern::json {

namespace {

struct Keyword {
    std::string_view spelling;
    TokenKind kind;
};

constexpr Keyword kKeywords[] = {
    {"true", TokenKind::kTrue},
    {"false", TokenKind::kFalse},
    {"null", TokenKind::kNull},
};

bool starts_with(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

}  // namespace

void Lexer::skip_blanks() noexcept {
    while (!rest_.empty()) {
        const char character = rest_.front();
        if (character == '\n') {
            ++position_.line;
            position_.column = 1;
        } else if (character == ' ' || character == '\t' || character == '\r') {
            ++position_.column;
        } else {
            return;
        }
        rest_.remove_prefix(1);
    }
}

Token Lexer::take(TokenKind kind, std::size_t length) noexcept {
    Token token{kind, rest_.substr(0, length), position_};
    rest_.remove_prefix(length);
    position_.column += static_cast<std::uint32_t>(length);
    return token;
}

// The quotes belong to the spelling. A backslash protects whatever follows, so
// "\\" ends where it looks like it ends.
std::size_t Lexer::string_length() const {
    std::size_t index = 1;
    while (index < rest_.size()) {
        const char character = rest_[index];
        if (character == '"') {
            return index + 1;
        }
        if (static_cast<unsigned char>(character) < 0x20) {
            throw ParseError(position_, "control character in string");
        }
        index += character == '\\' ? 2 : 1;
    }
    throw ParseError(position_, "string without an end");
}

std::size_t Lexer::number_length() const {
    std::size_t index = rest_.front() == '-' ? 1 : 0;
    const auto digits = [&] {
        const std::size_t start = index;
        while (index < rest_.size() && is_digit(rest_[index])) ++index;
        if (index == start) throw ParseError(position_, "digit expected");
    };
    if (index < rest_.size() && rest_[index] == '0') {
        ++index;
    } else {
        digits();
    }
    if (index < rest_.size() && rest_[index] == '.') {
        ++index;
        digits();
    }
    if (index < rest_.size() && (rest_[index] == 'e' || rest_[index] == 'E')) {
        ++index;
        if (index < rest_.size() && (rest_[index] == '+' || rest_[index] == '-')) ++index;
        digits();
    }
    return index;
}

Token Lexer::next() {
    skip_blanks();
    if (rest_.empty()) {
        return take(TokenKind::kEnd, 0);
    }
    switch (rest_.front()) {
        case '{': return take(TokenKind::kBraceOpen, 1);
        case '}': return take(TokenKind::kBraceClose, 1);
        case '[': return take(TokenKind::kBracketOpen, 1);
        case ']': return take(TokenKind::kBracketClose, 1);
        case ':': return take(TokenKind::kColon, 1);
        case ',': return take(TokenKind::kComma, 1);
        case '"': return take(TokenKind::kString, string_length());
        default: break;
    }
    for (const Keyword& keyword : kKeywords) {
        if (starts_with(rest_, keyword.spelling)) {
            return take(keyword.kind, keyword.spelling.size());
        }
    }
    if (rest_.front() == '-' || is_digit(rest_.front())) {
        return take(TokenKind::kNumber, number_length());
    }
    throw ParseError(position_, std::string("unexpected character '") + rest_.front() + "'");
}

}  // namespace lantern::json
