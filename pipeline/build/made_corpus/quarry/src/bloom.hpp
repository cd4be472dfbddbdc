/*
 *  Bloom filters for sorted tables.
 *
 *  SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-or-later
 */
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "quarry/slice.hpp"

namespace quarry {

inline std::uint64_t HashBytes(Slice bytes, std::uint64_t seed) {
  std::uint64_t h = seed ^ (bytes.size() * 0xc6a4a7935bd1e995ull);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    h ^= static_cast<unsigned char>(bytes[i]);
    h *= 0x100000001b3ull;
    h ^= h >> 29;
  }
  return h;
}

// Two hashes are enough for any number of probes: probe i looks at h1 + i * h2
// (Kirsch and Mitzenmacher, 2006).
class BloomFilter {
 public:
  BloomFilter(std::size_t expected_keys, double bits_per_key)
      : num_probes_(ProbesFor(bits_per_key)), bits_(BitsFor(expected_keys, bits_per_key)) {}

  void Add(Slice key) {
    Visit(key, [this](std::size_t bit) {
      bits_[bit / 64] |= std::uint64_t{1} << (bit % 64);
      return true;
    });
  }

  bool MayContain(Slice key) const {
    return Visit(key, [this](std::size_t bit) { return (bits_[bit / 64] >> (bit % 64) & 1) != 0; });
  }

  double FillFraction() const {
    std::size_t set = 0;
    for (std::uint64_t word : bits_) {
      for (; word != 0; word &= word - 1) ++set;
    }
    return static_cast<double>(set) / static_cast<double>(bits_.size() * 64);
  }

 private:
  static int ProbesFor(double bits_per_key) {
    const int probes = static_cast<int>(std::lround(bits_per_key * 0.6931471805599453));
    return probes < 1 ? 1 : probes > 30 ? 30 : probes;
  }

  static std::size_t BitsFor(std::size_t keys, double bits_per_key) {
    const auto bits = static_cast<std::size_t>(static_cast<double>(keys) * bits_per_key);
    return (bits < 64 ? 64 : bits + 63) / 64;
  }

  template <typename Visitor>
  bool Visit(Slice key, Visitor visit) const {
    const std::uint64_t h1 = HashBytes(key, 0x9ae16a3b2f90404full);
    const std::uint64_t h2 = HashBytes(key, 0xc949d7c7509e6557ull) | 1;
    for (int probe = 0; probe < num_probes_; ++probe) {
      if (!visit((h1 + static_cast<std::uint64_t>(probe) * h2) % (bits_.size() * 64))) return false;
    }
    return true;
  }

  int num_probes_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace quarry
