// Copyright 2022 The Quarry Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A block is a run of entries in key order:
//
//   shared: varint | unshared: varint | value length: varint | key suffix | value
//
// Every sixteenth entry is a restart point, whose key is whole. The block ends
// with the offsets of the restart points (4 bytes each) and their number.

#include <cstring>
#include <vector>

#include "quarry/slice.hpp"
#include "quarry/varint.hpp"

namespace quarry {

class BlockBuilder {
 public:
  explicit BlockBuilder(int restart_interval) : restart_interval_(restart_interval) { Reset(); }

  void Add(Slice key, Slice value);
  Slice Finish();
  void Reset();
  size_t EstimatedSize() const { return buffer_.size() + (restarts_.size() + 1) * sizeof(uint32_t); }

 private:
  size_t SharedPrefix(Slice key) const;
  void PutFixed32(uint32_t value);

  const int restart_interval_;
  std::string buffer_;
  std::vector<uint32_t> restarts_;
  std::string last_key_;
  int since_restart_ = 0;
};

void BlockBuilder::Reset() {
  buffer_.clear();
  restarts_.assign(1, 0);
  last_key_.clear();
  since_restart_ = 0;
}

size_t BlockBuilder::SharedPrefix(Slice key) const {
  const size_t limit = std::min(key.size(), last_key_.size());
  size_t shared = 0;
  while (shared < limit && key[shared] == last_key_[shared]) ++shared;
  return shared;
}

void BlockBuilder::PutFixed32(uint32_t value) {
  char bytes[4];
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  buffer_.append(bytes, sizeof bytes);
}

void BlockBuilder::Add(Slice key, Slice value) {
  assert(last_key_.empty() || Slice(last_key_).Compare(key) < 0);
  size_t shared = 0;
  if (since_restart_ < restart_interval_) {
    shared = SharedPrefix(key);
  } else {
    restarts_.push_back(static_cast<uint32_t>(buffer_.size()));
    since_restart_ = 0;
  }
  PutVarint64(&buffer_, shared);
  PutVarint64(&buffer_, key.size() - shared);
  PutVarint64(&buffer_, value.size());
  buffer_.append(key.data() + shared, key.size() - shared);
  buffer_.append(value.data(), value.size());
  last_key_.assign(key.data(), key.size());
  ++since_restart_;
}

Slice BlockBuilder::Finish() {
  for (uint32_t restart : restarts_) PutFixed32(restart);
  PutFixed32(static_cast<uint32_t>(restarts_.size()));
  return Slice(buffer_);
}

}  // namespace quarry
