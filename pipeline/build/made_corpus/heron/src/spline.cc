#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace heron {

/* A monotone cubic through given points (Fritsch and Carlson 1980): between two
 * samples it never leaves the interval of their values, as a natural spline does. */
class MonotoneSpline {
public:
    MonotoneSpline(std::vector<double> x, std::vector<double> y);
    double operator()(double at) const;
    double derivative(double at) const;

private:
    std::size_t segment(double at) const;
    void limit_slopes(const std::vector<double>& secants);

    std::vector<double> x_, y_, slope_;
};

MonotoneSpline::MonotoneSpline(std::vector<double> x, std::vector<double> y)
    : x_(std::move(x)), y_(std::move(y)), slope_(x_.size()) {
    if (x_.size() < 2 || x_.size() != y_.size()) throw std::invalid_argument("two points at least");
    if (!std::is_sorted(x_.begin(), x_.end())) throw std::invalid_argument("abscissae must rise");
    std::vector<double> secants(x_.size() - 1);
    for (std::size_t i = 0; i + 1 < x_.size(); ++i) secants[i] = (y_[i + 1] - y_[i]) / (x_[i + 1] - x_[i]);
    slope_.front() = secants.front();
    slope_.back() = secants.back();
    for (std::size_t i = 1; i + 1 < x_.size(); ++i) {
        const bool turns = secants[i - 1] * secants[i] <= 0;
        slope_[i] = turns ? 0.0 : (secants[i - 1] + secants[i]) / 2;
    }
    limit_slopes(secants);
}

void MonotoneSpline::limit_slopes(const std::vector<double>& secants) {
    for (std::size_t i = 0; i < secants.size(); ++i) {
        if (secants[i] == 0) {
            slope_[i] = slope_[i + 1] = 0;
            continue;
        }
        const double a = slope_[i] / secants[i], b = slope_[i + 1] / secants[i];
        const double square = a * a + b * b;
        if (square > 9) {
            const double scale = 3 / std::sqrt(square);
            slope_[i] = scale * a * secants[i];
            slope_[i + 1] = scale * b * secants[i];
        }
    }
}

std::size_t MonotoneSpline::segment(double at) const {
    const auto after = std::upper_bound(x_.begin() + 1, x_.end() - 1, at);
    return static_cast<std::size_t>(after - x_.begin()) - 1;
}

double MonotoneSpline::operator()(double at) const {
    const std::size_t i = segment(at);
    const double width = x_[i + 1] - x_[i], t = (at - x_[i]) / width;
    const double h00 = (1 + 2 * t) * (1 - t) * (1 - t), h10 = t * (1 - t) * (1 - t);
    const double h01 = t * t * (3 - 2 * t), h11 = t * t * (t - 1);
    return h00 * y_[i] + h10 * width * slope_[i] + h01 * y_[i + 1] + h11 * width * slope_[i + 1];
}

double MonotoneSpline::derivative(double at) const {
    const std::size_t i = segment(at);
    const double width = x_[i + 1] - x_[i], t = (at - x_[i]) / width;
    const double d00 = 6 * t * (t - 1) / width, d10 = (1 - t) * (1 - 3 * t), d11 = t * (3 * t - 2);
    return d00 * y_[i] + d10 * slope_[i] - d00 * y_[i + 1] + d11 * slope_[i + 1];
}

}  // namespace heron
