// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ratio>
#include <type_traits>

namespace heron::units {

/// Exponents of metre, kilogram and second. Adding a metre to a second does not compile.
template <int Length, int Mass, int Time>
struct Dimension {
    static constexpr int length = Length, mass = Mass, time = Time;
};

template <typename A, typename B>
using Product = Dimension<A::length + B::length, A::mass + B::mass, A::time + B::time>;

template <typename A, typename B>
using Ratio = Dimension<A::length - B::length, A::mass - B::mass, A::time - B::time>;

template <typename D>
class Quantity {
public:
    constexpr explicit Quantity(double value) : value_(value) {}
    constexpr double in(Quantity unit) const { return value_ / unit.value_; }
    constexpr double raw() const { return value_; }

    friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
    friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
    friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity(factor * a.value_); }
    friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }

private:
    double value_;
};

template <typename A, typename B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
    return Quantity<Product<A, B>>(a.raw() * b.raw());
}

template <typename A, typename B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
    return Quantity<Ratio<A, B>>(a.raw() / b.raw());
}

using Length = Quantity<Dimension<1, 0, 0>>;
using Mass = Quantity<Dimension<0, 1, 0>>;
using Time = Quantity<Dimension<0, 0, 1>>;
using Speed = Quantity<Dimension<1, 0, -1>>;
using Force = Quantity<Dimension<1, 1, -2>>;

inline namespace literals {
constexpr Length operator""_m(long double value) { return Length(static_cast<double>(value)); }
constexpr Length operator""_km(long double value) { return Length(static_cast<double>(value) * 1000); }
constexpr Mass operator""_kg(long double value) { return Mass(static_cast<double>(value)); }
constexpr Time operator""_s(long double value) { return Time(static_cast<double>(value)); }
constexpr Time operator""_h(long double value) { return Time(static_cast<double>(value) * 3600); }
}  // namespace literals

static_assert(std::is_same_v<decltype(1.0_km / 1.0_h), Speed>);
static_assert(std::is_same_v<decltype(2.0_kg * (1.0_m / 1.0_s) / 1.0_s), Force>);

}  // namespace heron::units
