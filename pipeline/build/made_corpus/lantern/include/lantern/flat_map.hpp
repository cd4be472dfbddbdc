// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace lantern {

/// Open addressing with robin-hood probing: an element that is far from its home
/// slot displaces one that is near, so that lookups stop early.
template <typename Key, typename Mapped, typename Hash = std::hash<Key>>
class FlatMap {
    struct Slot {
        std::uint32_t distance = 0;  // 0 = free, 1 = at home, 2 = one further ...
        Key key{};
        Mapped mapped{};
    };

public:
    FlatMap() : slots_(8) {}

    std::size_t size() const { return size_; }

    bool insert(Key key, Mapped mapped) {
        if (find(key) != nullptr) return false;
        if ((size_ + 1) * 8 > slots_.size() * 7) grow();
        place(std::move(key), std::move(mapped));
        ++size_;
        return true;
    }

    Mapped* find(const Key& key) {
        return const_cast<Mapped*>(static_cast<const FlatMap*>(this)->find(key));
    }

    const Mapped* find(const Key& key) const {
        std::size_t index = home(key);
        for (std::uint32_t distance = 1; slots_[index].distance >= distance; ++distance) {
            if (slots_[index].key == key) return &slots_[index].mapped;
            index = next(index);
        }
        return nullptr;
    }

    /// Backward-shift deletion: no tombstones, so a map that shrinks gets faster again.
    bool erase(const Key& key) {
        std::size_t index = home(key);
        for (std::uint32_t distance = 1;; ++distance) {
            if (slots_[index].distance < distance) return false;
            if (slots_[index].key == key) break;
            index = next(index);
        }
        for (std::size_t after = next(index); slots_[after].distance > 1; after = next(after)) {
            slots_[index] = std::move(slots_[after]);
            --slots_[index].distance;
            index = after;
        }
        slots_[index] = Slot{};
        --size_;
        return true;
    }

    template <typename Visitor>
    void each(Visitor&& visit) const {
        for (const Slot& slot : slots_) {
            if (slot.distance != 0) visit(slot.key, slot.mapped);
        }
    }

private:
    std::size_t home(const Key& key) const { return Hash{}(key) * 0x9E3779B97F4A7C15ull & (slots_.size() - 1); }
    std::size_t next(std::size_t index) const { return (index + 1) & (slots_.size() - 1); }

    void place(Key key, Mapped mapped) {
        Slot moving{1, std::move(key), std::move(mapped)};
        std::size_t index = home(moving.key);
        while (slots_[index].distance != 0) {
            if (slots_[index].distance < moving.distance) std::swap(slots_[index], moving);
            ++moving.distance;
            index = next(index);
        }
        slots_[index] = std::move(moving);
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        for (Slot& slot : old) {
            if (slot.distance != 0) place(std::move(slot.key), std::move(slot.mapped));
        }
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
};

}  // namespace lantern
