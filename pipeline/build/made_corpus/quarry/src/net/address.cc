// SPDX-License-Identifier: MIT
// SPDX-License-Identifier: BSD-2-Clause
//
// Both tags apply: the parser was taken from a BSD project, the rest is MIT.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quarry::net {

using Octets = std::array<std::uint8_t, 4>;

struct Endpoint {
  Octets octets{};
  std::uint16_t port = 0;
};

namespace {

std::optional<unsigned> TakeNumber(std::string_view* text, unsigned limit) {
  unsigned value = 0;
  std::size_t length = 0;
  while (length < text->size() && (*text)[length] >= '0' && (*text)[length] <= '9') {
    value = value * 10 + static_cast<unsigned>((*text)[length] - '0');
    if (value > limit) return std::nullopt;
    ++length;
  }
  // Leading zeros are refused: inet_aton reads them as octal, people do not.
  if (length == 0 || (length > 1 && (*text)[0] == '0')) return std::nullopt;
  text->remove_prefix(length);
  return value;
}

bool Take(std::string_view* text, char wanted) {
  if (text->empty() || text->front() != wanted) return false;
  text->remove_prefix(1);
  return true;
}

}  // namespace

std::optional<Endpoint> ParseEndpoint(std::string_view text) {
  Endpoint endpoint;
  for (int i = 0; i < 4; ++i) {
    if (i > 0 && !Take(&text, '.')) return std::nullopt;
    const auto octet = TakeNumber(&text, 255);
    if (!octet) return std::nullopt;
    endpoint.octets[i] = static_cast<std::uint8_t>(*octet);
  }
  if (!Take(&text, ':')) return std::nullopt;
  const auto port = TakeNumber(&text, 65535);
  if (!port || !text.empty()) return std::nullopt;
  endpoint.port = static_cast<std::uint16_t>(*port);
  return endpoint;
}

bool IsPrivate(const Octets& a) {
  return a[0] == 10 || a[0] == 127 || (a[0] == 172 && (a[1] & 0xf0) == 16) || (a[0] == 192 && a[1] == 168);
}

}  // namespace quarry::net
