// SPDX-License-Identifier: MIT WITH Apache-2.0
//
// Which tables to merge next. The expression above is not one: Apache-2.0 is a
// licence and no exception.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace quarry {

struct Table {
  std::uint64_t id;
  std::uint64_t num_bytes;
  int level;
};

struct Plan {
  std::vector<std::uint64_t> inputs;
  int output_level = 0;
  double score = 0.0;
};

double LevelLimit(int level) {
  double limit = 10.0 * 1048576.0;
  while (level-- > 1) limit *= 10.0;
  return limit;
}

Plan PickCompaction(const std::vector<Table>& tables, int num_levels) {
  Plan best;
  for (int level = 0; level + 1 < num_levels; ++level) {
    double total = 0.0;
    for (const Table& table : tables) {
      if (table.level == level) total += static_cast<double>(table.num_bytes);
    }
    const double score = total / LevelLimit(level);
    if (score > best.score) {
      best.score = score;
      best.output_level = level + 1;
    }
  }
  for (const Table& table : tables) {
    if (table.level + 1 == best.output_level) best.inputs.push_back(table.id);
  }
  std::sort(best.inputs.begin(), best.inputs.end());
  return best;
}

}  // namespace quarry
