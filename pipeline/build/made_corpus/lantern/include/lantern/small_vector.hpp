// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace lantern {

/// A vector that keeps its first `N` elements inside itself. Moving one that has
/// not spilled moves the elements; iterators are then invalid, as in std::array.
template <typename T, std::size_t N>
class SmallVector {
    static_assert(N > 0, "use std::vector when nothing is kept inline");
    static_assert(std::is_nothrow_move_constructible_v<T>, "growth must not throw half way");

public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;

    SmallVector() noexcept : data_(inline_data()) {}

    SmallVector(std::initializer_list<T> items) : SmallVector() {
        reserve(items.size());
        for (const T& item : items) push_back(item);
    }

    SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }

    SmallVector& operator=(SmallVector&& other) noexcept {
        if (this != &other) {
            clear();
            release();
            take(other);
        }
        return *this;
    }

    SmallVector(const SmallVector& other) : SmallVector() {
        reserve(other.size_);
        std::uninitialized_copy(other.begin(), other.end(), data_);
        size_ = other.size_;
    }

    ~SmallVector() {
        clear();
        release();
    }

    template <typename... Arguments>
    T& emplace_back(Arguments&&... arguments) {
        if (size_ == capacity_) reserve(capacity_ * 2);
        T* slot = ::new (static_cast<void*>(data_ + size_)) T(std::forward<Arguments>(arguments)...);
        ++size_;
        return *slot;
    }

    void push_back(const T& value) { emplace_back(value); }
    void push_back(T&& value) { emplace_back(std::move(value)); }

    void pop_back() noexcept { std::destroy_at(data_ + --size_); }

    void clear() noexcept {
        std::destroy_n(data_, size_);
        size_ = 0;
    }

    void reserve(std::size_t wanted) {
        if (wanted <= capacity_) return;
        T* fresh = std::allocator<T>().allocate(wanted);
        std::uninitialized_move_n(data_, size_, fresh);
        std::destroy_n(data_, size_);
        release();
        data_ = fresh;
        capacity_ = wanted;
    }

    T& operator[](std::size_t index) noexcept { return data_[index]; }
    const T& operator[](std::size_t index) const noexcept { return data_[index]; }

    iterator begin() noexcept { return data_; }
    iterator end() noexcept { return data_ + size_; }
    const_iterator begin() const noexcept { return data_; }
    const_iterator end() const noexcept { return data_ + size_; }

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    bool is_inline() const noexcept { return data_ == inline_data(); }

    friend bool operator==(const SmallVector& left, const SmallVector& right) {
        return std::equal(left.begin(), left.end(), right.begin(), right.end());
    }

private:
    T* inline_data() noexcept { return reinterpret_cast<T*>(storage_); }
    const T* inline_data() const noexcept { return reinterpret_cast<const T*>(storage_); }

    void release() noexcept {
        if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
        data_ = inline_data();
        capacity_ = N;
    }

    void take(SmallVector& other) noexcept {
        if (other.is_inline()) {
            std::uninitialized_move_n(other.data_, other.size_, data_);
            size_ = other.size_;
            other.clear();
            return;
        }
        data_ = std::exchange(other.data_, other.inline_data());
        capacity_ = std::exchange(other.capacity_, N);
        size_ = std::exchange(other.size_, 0);
    }

    T* data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = N;
    alignas(T) std::byte storage_[N * sizeof(T)];
};

}  // namespace lantern
