// Copyright 2023 The Quarry Authors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace quarry::query {

enum class Operator { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kAnd, kOr, kPlus, kMinus, kTimes };

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Column {
  std::string name;
};

struct Literal {
  std::variant<std::int64_t, double, std::string> value;
};

struct Binary {
  Operator op;
  ExpressionPtr left;
  ExpressionPtr right;
};

struct Call {
  std::string function;
  std::vector<ExpressionPtr> arguments;
};

struct Expression {
  std::variant<Column, Literal, Binary, Call> node;
};

/// select columns from table where condition limit n
struct Select {
  std::vector<std::string> columns;
  std::string table;
  ExpressionPtr condition;  // null: every row
  std::int64_t limit = -1;  // -1: no limit
};

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace quarry::query
