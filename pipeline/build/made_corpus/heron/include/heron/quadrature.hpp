#ifndef HERON_QUADRATURE_HPP
#define HERON_QUADRATURE_HPP

#include <cmath>
#include <functional>
#include <queue>

namespace heron {

struct Integral {
    double value = 0.0;
    double error_bound = 0.0;
    int num_evaluations = 0;
    bool converged = false;
};

namespace detail {

// Nodes and weights of the 15-point Kronrod rule and of the 7-point Gauss rule inside it.
inline constexpr double kNodes[8] = {
    0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
    0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
    0.586087235467691130294144838258730, 0.405845151377397166906606412076961,
    0.207784955007898467600689403773245, 0.000000000000000000000000000000000,
};
inline constexpr double kKronrod[8] = {
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
    0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
    0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649, 0.209482141084727828012999174891714,
};
inline constexpr double kGauss[4] = {
    0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
    0.381830050505118944950369775488975, 0.417959183673469387755102040816327,
};

struct Segment {
    double low, high, value, error;
    bool operator<(const Segment& other) const { return error < other.error; }
};

template <typename Function>
Segment gauss_kronrod(Function&& f, double low, double high) {
    const double center = 0.5 * (low + high), half = 0.5 * (high - low);
    const double middle = f(center);
    double kronrod = middle * kKronrod[7], gauss = middle * kGauss[3];
    for (int i = 0; i < 7; ++i) {
        const double sum = f(center - half * kNodes[i]) + f(center + half * kNodes[i]);
        kronrod += sum * kKronrod[i];
        if (i % 2 == 1) gauss += sum * kGauss[i / 2];
    }
    return {low, high, kronrod * half, std::fabs(kronrod - gauss) * half};
}

}  // namespace detail

/** Adaptive integration: the segment with the largest error is halved until the sum of errors is small enough. */
template <typename Function>
Integral integrate(Function&& f, double low, double high, double tolerance = 1e-10, int max_segments = 200) {
    std::priority_queue<detail::Segment> segments;
    segments.push(detail::gauss_kronrod(f, low, high));
    Integral result{segments.top().value, segments.top().error, 15, false};
    while (result.error_bound > tolerance && static_cast<int>(segments.size()) < max_segments) {
        const detail::Segment worst = segments.top();
        segments.pop();
        const double middle = 0.5 * (worst.low + worst.high);
        for (const auto& half : {detail::gauss_kronrod(f, worst.low, middle), detail::gauss_kronrod(f, middle, worst.high)}) {
            segments.push(half);
            result.value += half.value;
            result.error_bound += half.error;
            result.num_evaluations += 15;
        }
        result.value -= worst.value;
        result.error_bound -= worst.error;
    }
    result.converged = result.error_bound <= tolerance;
    return result;
}

}  // namespace heron

#endif
