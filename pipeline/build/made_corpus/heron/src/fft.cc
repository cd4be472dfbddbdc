// Fast Fourier transform: iterative radix 2, and Bluestein's chirp for every other length.
#include <complex>
#include <cstddef>
#include <vector>

namespace heron {

using Complex = std::complex<double>;

namespace {

constexpr double kPi = 3.14159265358979323846;

bool is_power_of_two(std::size_t n) {
    return n != 0 && (n & (n - 1)) == 0;
}

void bit_reverse(std::vector<Complex>& values) {
    const std::size_t n = values.size();
    for (std::size_t i = 1, j = 0; i < n; ++i) {
        std::size_t bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) std::swap(values[i], values[j]);
    }
}

// The twiddle factors are computed anew at every level rather than by repeated
// multiplication, whose error grows with n.
void radix2(std::vector<Complex>& values, double direction) {
    bit_reverse(values);
    const std::size_t n = values.size();
    for (std::size_t length = 2; length <= n; length <<= 1) {
        const double angle = direction * 2 * kPi / static_cast<double>(length);
        std::vector<Complex> roots(length / 2);
        for (std::size_t k = 0; k < roots.size(); ++k) roots[k] = std::polar(1.0, angle * static_cast<double>(k));
        for (std::size_t start = 0; start < n; start += length) {
            for (std::size_t k = 0; k < length / 2; ++k) {
                const Complex even = values[start + k];
                const Complex odd = values[start + k + length / 2] * roots[k];
                values[start + k] = even + odd;
                values[start + k + length / 2] = even - odd;
            }
        }
    }
}

void bluestein(std::vector<Complex>& values, double direction) {
    const std::size_t n = values.size();
    std::size_t padded = 1;
    while (padded < 2 * n - 1) padded <<= 1;
    std::vector<Complex> chirp(n), a(padded), b(padded);
    for (std::size_t k = 0; k < n; ++k) {
        // k * k is reduced modulo 2n first: the square of a large k has no digits left for the sine.
        const auto reduced = static_cast<double>(k * k % (2 * n));
        chirp[k] = std::polar(1.0, direction * kPi * reduced / static_cast<double>(n));
        a[k] = values[k] * chirp[k];
    }
    b[0] = std::conj(chirp[0]);
    for (std::size_t k = 1; k < n; ++k) b[k] = b[padded - k] = std::conj(chirp[k]);
    radix2(a, -1);
    radix2(b, -1);
    for (std::size_t k = 0; k < padded; ++k) a[k] *= b[k];
    radix2(a, +1);
    for (std::size_t k = 0; k < n; ++k) values[k] = a[k] * chirp[k] / static_cast<double>(padded);
}

void transform(std::vector<Complex>& values, double direction) {
    if (values.size() < 2) return;
    if (is_power_of_two(values.size())) {
        radix2(values, direction);
    } else {
        bluestein(values, direction);
    }
}

}  // namespace

void forward_fft(std::vector<Complex>& values) {
    transform(values, -1);
}

void inverse_fft(std::vector<Complex>& values) {
    transform(values, +1);
    for (Complex& value : values) value /= static_cast<double>(values.size());
}

}  // namespace heron
