// Copyright 2022 The Quarry Authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef QUARRY_SLICE_HPP_
#define QUARRY_SLICE_HPP_

#include <cassert>
#include <cstddef>
#include <cstring>
#include <string>

namespace quarry {

// A borrowed range of bytes. Whoever makes one sees to it that the bytes outlive it.
class Slice {
 public:
  constexpr Slice() = default;
  constexpr Slice(const char* data, size_t size) : data_(data), size_(size) {}
  Slice(const std::string& text) : data_(text.data()), size_(text.size()) {}  // NOLINT: implicit on purpose

  constexpr const char* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }

  char operator[](size_t index) const {
    assert(index < size_);
    return data_[index];
  }

  void remove_prefix(size_t count) {
    assert(count <= size_);
    data_ += count;
    size_ -= count;
  }

  std::string ToString() const { return std::string(data_, size_); }

  // Three-way, bytes taken as unsigned: the order of keys in every table.
  int Compare(Slice other) const {
    const size_t shared = size_ < other.size_ ? size_ : other.size_;
    const int order = shared == 0 ? 0 : std::memcmp(data_, other.data_, shared);
    if (order != 0) return order;
    return size_ < other.size_ ? -1 : size_ > other.size_ ? 1 : 0;
  }

 private:
  const char* data_ = "";
  size_t size_ = 0;
};

inline bool operator==(Slice a, Slice b) { return a.Compare(b) == 0; }
inline bool operator!=(Slice a, Slice b) { return !(a == b); }
inline bool operator<(Slice a, Slice b) { return a.Compare(b) < 0; }

}  // namespace quarry

#endif  // QUARRY_SLICE_HPP_
