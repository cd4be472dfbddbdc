// Copyright 2022 The Quarry Authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef QUARRY_SKIP_LIST_HPP_
#define QUARRY_SKIP_LIST_HPP_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>

namespace quarry {

// One writer, any number of readers, no locks. A node is published by a release
// store into its predecessor's link and never removed, so that a reader that
// holds a pointer holds it for the life of the list.
template <typename Key, typename Less>
class SkipList {
  static constexpr int kMaximumHeight = 12;
  static constexpr uint32_t kBranching = 4;

  struct Node {
    explicit Node(Key k) : key(std::move(k)) {}
    Key key;
    std::array<std::atomic<Node*>, kMaximumHeight> next{};
  };

 public:
  explicit SkipList(Less less = Less(), uint32_t seed = 0xdeadbeef) : less_(less), head_(Key()), random_(seed) {}

  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;

  void Insert(Key key) {
    std::array<Node*, kMaximumHeight> previous;
    FindAtLeast(key, &previous);
    const int height = RandomHeight();
    for (int level = height_.load(std::memory_order_relaxed); level < height; ++level) previous[level] = &head_;
    if (height > height_.load(std::memory_order_relaxed)) height_.store(height, std::memory_order_relaxed);
    Node* node = &nodes_.emplace_back(std::move(key));
    for (int level = 0; level < height; ++level) {
      node->next[level].store(previous[level]->next[level].load(std::memory_order_relaxed), std::memory_order_relaxed);
      previous[level]->next[level].store(node, std::memory_order_release);
    }
  }

  bool Contains(const Key& key) const {
    const Node* node = FindAtLeast(key, nullptr);
    return node != nullptr && !less_(key, node->key);
  }

  class Iterator {
   public:
    explicit Iterator(const SkipList* list) : list_(list) {}
    bool Valid() const { return node_ != nullptr; }
    const Key& key() const { return node_->key; }
    void Next() { node_ = node_->next[0].load(std::memory_order_acquire); }
    void Seek(const Key& target) { node_ = list_->FindAtLeast(target, nullptr); }
    void SeekToFirst() { node_ = list_->head_.next[0].load(std::memory_order_acquire); }

   private:
    const SkipList* list_;
    const Node* node_ = nullptr;
  };

 private:
  int RandomHeight() {
    int height = 1;
    while (height < kMaximumHeight && NextRandom() % kBranching == 0) ++height;
    return height;
  }

  // Park and Miller's minimal standard generator, 1988.
  uint32_t NextRandom() {
    random_ = static_cast<uint32_t>(uint64_t{random_} * 16807 % 2147483647);
    return random_;
  }

  Node* FindAtLeast(const Key& key, std::array<Node*, kMaximumHeight>* previous) const {
    Node* at = const_cast<Node*>(&head_);
    int level = height_.load(std::memory_order_relaxed) - 1;
    while (true) {
      Node* next = at->next[level].load(std::memory_order_acquire);
      if (next != nullptr && less_(next->key, key)) {
        at = next;
        continue;
      }
      if (previous != nullptr) (*previous)[level] = at;
      if (level == 0) return next;
      --level;
    }
  }

  Less less_;
  Node head_;
  std::deque<Node> nodes_;
  std::atomic<int> height_{1};
  uint32_t random_;
};

}  // namespace quarry

#endif  // QUARRY_SKIP_LIST_HPP_
