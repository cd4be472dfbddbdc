// Copyright 2023 The Quarry Authors.
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <stdexcept>

#include "ast.hpp"

namespace quarry::query {

using Scalar = std::variant<std::int64_t, double, std::string>;
using Lookup = std::function<Scalar(const std::string&)>;

static bool Truth(const Scalar& value) {
  return std::visit(Overloaded{
                        [](std::int64_t number) { return number != 0; },
                        [](double number) { return number != 0.0; },
                        [](const std::string& text) { return !text.empty(); },
                    },
                    value);
}

static double AsDouble(const Scalar& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  throw std::invalid_argument("a text is no number");
}

// Integers stay integers as long as both sides are; texts compare with texts only.
static int Compare(const Scalar& left, const Scalar& right) {
  if (left.index() == right.index()) return left < right ? -1 : right < left ? 1 : 0;
  const double a = AsDouble(left), b = AsDouble(right);
  return a < b ? -1 : b < a ? 1 : 0;
}

static Scalar Arithmetic(Operator op, const Scalar& left, const Scalar& right) {
  const auto* a = std::get_if<std::int64_t>(&left);
  const auto* b = std::get_if<std::int64_t>(&right);
  if (a != nullptr && b != nullptr) {
    switch (op) {
      case Operator::kPlus: return *a + *b;
      case Operator::kMinus: return *a - *b;
      default: return *a * *b;
    }
  }
  const double x = AsDouble(left), y = AsDouble(right);
  switch (op) {
    case Operator::kPlus: return x + y;
    case Operator::kMinus: return x - y;
    default: return x * y;
  }
}

Scalar Evaluate(const Expression& expression, const Lookup& lookup);

static Scalar EvaluateBinary(const Binary& binary, const Lookup& lookup) {
  const Scalar left = Evaluate(*binary.left, lookup);
  if (binary.op == Operator::kAnd && !Truth(left)) return std::int64_t{0};
  if (binary.op == Operator::kOr && Truth(left)) return std::int64_t{1};
  const Scalar right = Evaluate(*binary.right, lookup);
  switch (binary.op) {
    case Operator::kAnd:
    case Operator::kOr: return std::int64_t{Truth(right)};
    case Operator::kEqual: return std::int64_t{Compare(left, right) == 0};
    case Operator::kNotEqual: return std::int64_t{Compare(left, right) != 0};
    case Operator::kLess: return std::int64_t{Compare(left, right) < 0};
    case Operator::kLessEqual: return std::int64_t{Compare(left, right) <= 0};
    case Operator::kGreater: return std::int64_t{Compare(left, right) > 0};
    case Operator::kGreaterEqual: return std::int64_t{Compare(left, right) >= 0};
    default: return Arithmetic(binary.op, left, right);
  }
}

Scalar Evaluate(const Expression& expression, const Lookup& lookup) {
  return std::visit(Overloaded{
                        [&](const Column& column) { return lookup(column.name); },
                        [](const Literal& literal) { return Scalar(literal.value); },
                        [&](const Binary& binary) { return EvaluateBinary(binary, lookup); },
                        [&](const Call& call) -> Scalar {
                          if (call.function == "length" && call.arguments.size() == 1) {
                            const Scalar text = Evaluate(*call.arguments[0], lookup);
                            return static_cast<std::int64_t>(std::get<std::string>(text).size());
                          }
                          throw std::invalid_argument("no function " + call.function);
                        },
                    },
                    expression.node);
}

}  // namespace quarry::query
