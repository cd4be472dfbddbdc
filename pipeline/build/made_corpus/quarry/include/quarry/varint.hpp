//===- varint.hpp - variable-length integers ------------------------------===//
//
// Part of the Quarry project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

#include "quarry/slice.hpp"

namespace quarry {

constexpr int kMaximumVarint64Bytes = 10;

inline void PutVarint64(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

// Zigzag: small negative numbers become small unsigned ones.
inline void PutSignedVarint64(std::string* out, int64_t value) {
  PutVarint64(out, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

inline bool GetVarint64(Slice* input, uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift <= 63 && !input->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>((*input)[0]);
    input->remove_prefix(1);
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      *value = result;
      return true;
    }
  }
  return false;
}

inline bool GetSignedVarint64(Slice* input, int64_t* value) {
  uint64_t raw;
  if (!GetVarint64(input, &raw)) return false;
  *value = static_cast<int64_t>(raw >> 1) ^ -static_cast<int64_t>(raw & 1);
  return true;
}

inline void PutLengthPrefixed(std::string* out, Slice value) {
  PutVarint64(out, value.size());
  out->append(value.data(), value.size());
}

inline bool GetLengthPrefixed(Slice* input, Slice* value) {
  uint64_t length;
  if (!GetVarint64(input, &length) || length > input->size()) return false;
  *value = Slice(input->data(), static_cast<size_t>(length));
  input->remove_prefix(static_cast<size_t>(length));
  return true;
}

}  // namespace quarry
