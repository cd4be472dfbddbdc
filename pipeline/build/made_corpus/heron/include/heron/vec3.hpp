#ifndef HERON_VEC3_HPP
#define HERON_VEC3_HPP

#include <cmath>

namespace heron {

/** A vector of three components. Everything is constexpr but the lengths. */
template <typename Real>
struct Vec3 {
    Real x{}, y{}, z{};

    constexpr Vec3& operator+=(const Vec3& other) {
        x += other.x;
        y += other.y;
        z += other.z;
        return *this;
    }

    constexpr Vec3& operator*=(Real factor) {
        x *= factor;
        y *= factor;
        z *= factor;
        return *this;
    }

    Real length() const { return std::hypot(x, y, z); }
};

template <typename Real>
constexpr Vec3<Real> operator+(Vec3<Real> a, const Vec3<Real>& b) {
    return a += b;
}

template <typename Real>
constexpr Vec3<Real> operator-(const Vec3<Real>& a, const Vec3<Real>& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

template <typename Real>
constexpr Vec3<Real> operator*(Real factor, Vec3<Real> v) {
    return v *= factor;
}

template <typename Real>
constexpr Real dot(const Vec3<Real>& a, const Vec3<Real>& b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

template <typename Real>
constexpr Vec3<Real> cross(const Vec3<Real>& a, const Vec3<Real>& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/** The angle between two vectors in radians. Kahan's formula, which keeps its digits near 0 and pi where acos loses them. */
template <typename Real>
Real angle_between(const Vec3<Real>& a, const Vec3<Real>& b) {
    const Real la = a.length(), lb = b.length();
    const Vec3<Real> u = lb * a, v = la * b;
    return 2 * std::atan2((u - v).length(), (u + v).length());
}

using Vec3f = Vec3<float>;
using Vec3d = Vec3<double>;

static_assert(dot(Vec3d{1, 2, 3}, Vec3d{4, -5, 6}) == 12);
static_assert(cross(Vec3d{1, 0, 0}, Vec3d{0, 1, 0}).z == 1);

}  // namespace heron

#endif
