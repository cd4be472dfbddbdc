// SPDX-License-Identifier: MIT
// Copyright (c) 2024 The Lantern Authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lantern::json {

/// Where in the input something went wrong: line and column count from one, in bytes.
struct Position {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
};

class ParseError : public std::runtime_error {
public:
    ParseError(Position position, const std::string& message)
        : std::runtime_error(message), position_(position) {}

    [[nodiscard]] Position position() const noexcept { return position_; }

private:
    Position position_;
};

enum class TokenKind : std::uint8_t {
    kEnd,
    kBraceOpen,
    kBraceClose,
    kBracketOpen,
    kBracketClose,
    kColon,
    kComma,
    kString,
    kNumber,
    kTrue,
    kFalse,
    kNull,
};

struct Token {
    TokenKind kind = TokenKind::kEnd;
    std::string_view spelling;
    Position position;
};

/// Splits a document into tokens without allocating. Strings keep their escapes.
class Lexer {
public:
    explicit Lexer(std::string_view input) noexcept : rest_(input) {}

    Token next();

private:
    void skip_blanks() noexcept;
    Token take(TokenKind kind, std::size_t length) noexcept;
    std::size_t string_length() const;
    std::size_t number_length() const;

    std::string_view rest_;
    Position position_;
};

class Value;
using Array = std::vector<Value>;
using Object = std::map<std::string, Value, std::less<>>;

class Value {
public:
    Value() = default;
    Value(bool value) : data_(value) {}
    Value(double value) : data_(value) {}
    Value(std::string value) : data_(std::move(value)) {}
    Value(Array value) : data_(std::make_shared<Array>(std::move(value))) {}
    Value(Object value) : data_(std::make_shared<Object>(std::move(value))) {}

    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
    [[nodiscard]] const bool* as_bool() const { return std::get_if<bool>(&data_); }
    [[nodiscard]] const double* as_number() const { return std::get_if<double>(&data_); }
    [[nodiscard]] const std::string* as_string() const { return std::get_if<std::string>(&data_); }
    [[nodiscard]] const Array* as_array() const;
    [[nodiscard]] const Object* as_object() const;

    /// Follows a path of keys such as "a.b.c". Null when any step is missing.
    [[nodiscard]] const Value* find(std::string_view path) const;

private:
    std::variant<std::monostate, bool, double, std::string, std::shared_ptr<Array>, std::shared_ptr<Object>> data_;
};

/// Parses one document. Depth is limited to 512, so that hostile input cannot exhaust the stack.
Value parse(std::string_view input);

}  // namespace lantern::json
