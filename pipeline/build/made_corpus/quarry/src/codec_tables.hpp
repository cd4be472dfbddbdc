// SPDX-License-Identifier: LicenseRef-Proprietary
// Supplied under a separate agreement; not part of the open-source distribution.
#pragma once

#include <array>
#include <cstdint>

namespace quarry::codec {

struct Model {
  std::uint16_t frequency;
  std::uint16_t cumulative;
};

inline constexpr std::array<Model, 12> kLiteralModel = {{
    {118, 0}, {97, 118}, {83, 215}, {61, 298}, {52, 359}, {44, 411},
    {31, 455}, {29, 486}, {22, 515}, {17, 537}, {9, 554}, {4, 563},
}};

constexpr std::uint32_t total() {
  return kLiteralModel.back().cumulative + kLiteralModel.back().frequency;
}

constexpr unsigned symbol_at(std::uint32_t point) {
  unsigned symbol = 0;
  while (symbol + 1 < kLiteralModel.size() && kLiteralModel[symbol + 1].cumulative <= point) ++symbol;
  return symbol;
}

static_assert(total() == 567);
static_assert(symbol_at(300) == 3);

}  // namespace quarry::codec
