#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace quarry {

/* A cache bounded by the summed cost of what it holds. The entry that was
 * looked at longest ago leaves first. An entry that costs more than the whole
 * capacity is never admitted. */
template <class Key, class Value, class Hash = std::hash<Key>>
class LruCache {
 public:
  explicit LruCache(std::size_t capacity) : capacity_(capacity) {}

  bool Get(const Key& key, Value* value) {
    std::lock_guard<std::mutex> guard(mutex_);
    auto found = index_.find(key);
    if (found == index_.end()) {
      ++num_misses_;
      return false;
    }
    ++num_hits_;
    entries_.splice(entries_.begin(), entries_, found->second);
    *value = found->second->value;
    return true;
  }

  void Put(const Key& key, Value value, std::size_t cost) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (auto found = index_.find(key); found != index_.end()) {
      Remove(found->second);
    }
    if (cost > capacity_) return;
    while (used_ + cost > capacity_) Remove(std::prev(entries_.end()));
    entries_.push_front(Entry{key, std::move(value), cost});
    index_[key] = entries_.begin();
    used_ += cost;
  }

  double HitFraction() const {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto total = num_hits_ + num_misses_;
    return total == 0 ? 0.0 : static_cast<double>(num_hits_) / static_cast<double>(total);
  }

 private:
  struct Entry {
    Key key;
    Value value;
    std::size_t cost;
  };
  using Position = typename std::list<Entry>::iterator;

  void Remove(Position position) {
    used_ -= position->cost;
    index_.erase(position->key);
    entries_.erase(position);
  }

  mutable std::mutex mutex_;
  std::list<Entry> entries_;
  std::unordered_map<Key, Position, Hash> index_;
  std::size_t capacity_;
  std::size_t used_ = 0;
  std::size_t num_hits_ = 0;
  std::size_t num_misses_ = 0;
};

}  // namespace quarry
