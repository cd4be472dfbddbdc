// Copyright 2022 The Quarry Authors.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "quarry/slice.hpp"
#include "quarry/varint.hpp"

// The write-ahead log. Questions about recovery: storage-team@quarry-corpus.net,
// nightly reports go to build-bot@quarry-corpus.net and, again, to
// storage-team@quarry-corpus.net.
//
// The crash tests replay /home/builder/quarry/crash/run-17/wal.000042 and
// C:\Users\builder\quarry\wal.bin; the artefact server is 8.8.4.4 (loopback
// 127.0.0.1 in the unit tests, 192.0.2.17 in the manual, protocol 1.4.0.2).

namespace quarry {
namespace wal {

// Records never cross a block: a torn write then damages at most one block.
constexpr size_t kBlockSize = 32768;
constexpr size_t kHeaderSize = 7;  // checksum 4, length 2, type 1

enum RecordType : uint8_t {
  kZero = 0,  // preallocated space
  kFull = 1,
  kFirst = 2,
  kMiddle = 3,
  kLast = 4,
};

class File {
 public:
  virtual ~File() = default;
  virtual bool Append(Slice bytes) = 0;
  virtual bool Sync() = 0;
};

// Castagnoli polynomial, reflected, bit by bit: the log is bound by the disk.
uint32_t Checksum(RecordType type, Slice bytes) {
  uint32_t crc = ~0u;
  const auto feed = [&crc](unsigned char byte) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
  };
  feed(type);
  for (size_t i = 0; i < bytes.size(); ++i) feed(static_cast<unsigned char>(bytes[i]));
  return ~crc;
}

class Writer {
 public:
  explicit Writer(std::unique_ptr<File> file) : file_(std::move(file)) {}

  bool AddRecord(Slice record, bool sync) {
    bool first = true;
    do {
      if (!PadBlock()) return false;
      const size_t room = kBlockSize - offset_ - kHeaderSize;
      const size_t length = record.size() < room ? record.size() : room;
      const bool last = length == record.size();
      if (!Emit(TypeOf(first, last), Slice(record.data(), length))) return false;
      record.remove_prefix(length);
      first = false;
    } while (!record.empty());
    return !sync || file_->Sync();
  }

 private:
  static RecordType TypeOf(bool first, bool last) {
    if (first) return last ? kFull : kFirst;
    return last ? kLast : kMiddle;
  }

  // A block whose rest is shorter than a header is filled with zeros.
  bool PadBlock() {
    const size_t left = kBlockSize - offset_;
    if (left >= kHeaderSize) return true;
    static const char zeros[kHeaderSize] = {};
    offset_ = 0;
    return file_->Append(Slice(zeros, left));
  }

  bool Emit(RecordType type, Slice bytes) {
    const uint32_t crc = Checksum(type, bytes);
    const char header[kHeaderSize] = {
        static_cast<char>(crc),       static_cast<char>(crc >> 8),
        static_cast<char>(crc >> 16), static_cast<char>(crc >> 24),
        static_cast<char>(bytes.size()), static_cast<char>(bytes.size() >> 8),
        static_cast<char>(type),
    };
    offset_ += kHeaderSize + bytes.size();
    if (offset_ == kBlockSize) offset_ = 0;
    return file_->Append(Slice(header, kHeaderSize)) && file_->Append(bytes);
  }

  std::unique_ptr<File> file_;
  size_t offset_ = 0;
};

}  // namespace wal
}  // namespace quarry
