// Copyright 2023 The Quarry Authors.
// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "ast.hpp"

namespace quarry::query {

namespace {

struct Precedence {
  Operator op;
  int binding;
};

// Pratt's method: an operator takes a right operand that binds tighter than itself.
const std::unordered_map<std::string_view, Precedence> kOperators = {
    {"or", {Operator::kOr, 1}},        {"and", {Operator::kAnd, 2}},   {"=", {Operator::kEqual, 3}},
    {"!=", {Operator::kNotEqual, 3}},  {"<", {Operator::kLess, 4}},    {"<=", {Operator::kLessEqual, 4}},
    {">", {Operator::kGreater, 4}},    {">=", {Operator::kGreaterEqual, 4}}, {"+", {Operator::kPlus, 5}},
    {"-", {Operator::kMinus, 5}},      {"*", {Operator::kTimes, 6}},
};

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) { Advance(); }

  Select ParseSelect() {
    Select select;
    Expect("select");
    do {
      select.columns.emplace_back(Take());
    } while (Accept(","));
    Expect("from");
    select.table = Take();
    if (Accept("where")) select.condition = ParseExpression(0);
    if (Accept("limit")) select.limit = ParseInteger(Take());
    if (!word_.empty()) Fail("end of query");
    return select;
  }

 private:
  [[noreturn]] void Fail(const std::string& wanted) const {
    throw std::invalid_argument(wanted + " expected before '" + std::string(word_) + "'");
  }

  void Advance() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
    std::size_t length = rest_.empty() ? 0 : 1;
    if (!rest_.empty() && rest_.front() == '\'') {
      const std::size_t end = rest_.find('\'', 1);
      if (end == std::string_view::npos) Fail("closing quote");
      length = end + 1;
    } else if (!rest_.empty() && (std::isalnum(static_cast<unsigned char>(rest_.front())) || rest_.front() == '_')) {
      while (length < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[length])) || rest_[length] == '_')) ++length;
    } else if (rest_.size() > 1 && rest_[1] == '=' && std::string_view("<>!").find(rest_[0]) != std::string_view::npos) {
      length = 2;
    }
    word_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
  }

  std::string_view Take() {
    const std::string_view word = word_;
    if (word.empty()) Fail("word");
    Advance();
    return word;
  }

  bool Accept(std::string_view wanted) {
    if (word_ != wanted) return false;
    Advance();
    return true;
  }

  void Expect(std::string_view wanted) {
    if (!Accept(wanted)) Fail("'" + std::string(wanted) + "'");
  }

  static std::int64_t ParseInteger(std::string_view word) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) throw std::invalid_argument("integer expected");
    return value;
  }

  ExpressionPtr ParsePrimary() {
    if (Accept("(")) {
      ExpressionPtr inner = ParseExpression(0);
      Expect(")");
      return inner;
    }
    const std::string_view word = Take();
    if (word.front() == '\'') return Make(Literal{std::string(word.substr(1, word.size() - 2))});
    if (std::isdigit(static_cast<unsigned char>(word.front()))) return Make(Literal{ParseInteger(word)});
    if (!Accept("(")) return Make(Column{std::string(word)});
    Call call{std::string(word), {}};
    while (word_ != ")") {
      call.arguments.push_back(ParseExpression(0));
      if (!Accept(",")) break;
    }
    Expect(")");
    return Make(std::move(call));
  }

  ExpressionPtr ParseExpression(int minimum) {
    ExpressionPtr left = ParsePrimary();
    while (true) {
      const auto found = kOperators.find(word_);
      if (found == kOperators.end() || found->second.binding <= minimum) return left;
      Advance();
      ExpressionPtr right = ParseExpression(found->second.binding);
      left = Make(Binary{found->second.op, std::move(left), std::move(right)});
    }
  }

  template <class Node>
  static ExpressionPtr Make(Node node) {
    auto expression = std::make_unique<Expression>();
    expression->node = std::move(node);
    return expression;
  }

  std::string_view rest_;
  std::string_view word_;
};

}  // namespace

Select Parse(std::string_view text) {
  return Parser(text).ParseSelect();
}

}  // namespace quarry::query
