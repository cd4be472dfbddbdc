/* This Source Code Form is subject to the terms of the Mozilla Public
 * License, v. 2.0.
 *
 * SPDX-License-Identifier: MPL-2.0
 */
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "quarry/varint.hpp"

namespace quarry::rows {

template <typename T, typename = void>
struct Codec;

template <typename T>
struct Codec<T, std::enable_if_t<std::is_integral_v<T> && std::is_signed_v<T>>> {
  static void Write(std::string* out, T value) { PutSignedVarint64(out, value); }
  static bool Read(Slice* in, T* value) {
    std::int64_t wide;
    if (!GetSignedVarint64(in, &wide)) return false;
    *value = static_cast<T>(wide);
    return *value == wide;
  }
};

template <>
struct Codec<std::string> {
  static void Write(std::string* out, const std::string& value) { PutLengthPrefixed(out, Slice(value)); }
  static bool Read(Slice* in, std::string* value) {
    Slice bytes;
    if (!GetLengthPrefixed(in, &bytes)) return false;
    *value = bytes.ToString();
    return true;
  }
};

template <typename... Columns>
class Row {
 public:
  using Tuple = std::tuple<Columns...>;

  static std::string Encode(const Tuple& row) {
    std::string out;
    std::apply([&out](const Columns&... column) { (Codec<Columns>::Write(&out, column), ...); }, row);
    return out;
  }

  static bool Decode(Slice bytes, Tuple* row) {
    return DecodeColumns(&bytes, row, std::index_sequence_for<Columns...>()) && bytes.empty();
  }

 private:
  template <std::size_t... I>
  static bool DecodeColumns(Slice* bytes, Tuple* row, std::index_sequence<I...>) {
    return (Codec<Columns>::Read(bytes, &std::get<I>(*row)) && ...);
  }
};

}  // namespace quarry::rows
