#ifndef HERON_STATISTICS_HPP
#define HERON_STATISTICS_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace heron {

/** Mean and variance in one pass (Welford 1962), mergeable (Chan, Golub and LeVeque 1979). */
class Moments {
public:
    void add(double value) {
        ++count_;
        const double delta = value - mean_;
        mean_ += delta / static_cast<double>(count_);
        sum_of_squares_ += delta * (value - mean_);
        smallest_ = std::min(smallest_, value);
        largest_ = std::max(largest_, value);
    }

    void merge(const Moments& other) {
        if (other.count_ == 0) return;
        const double n = static_cast<double>(count_), m = static_cast<double>(other.count_);
        const double delta = other.mean_ - mean_;
        sum_of_squares_ += other.sum_of_squares_ + delta * delta * n * m / (n + m);
        mean_ += delta * m / (n + m);
        count_ += other.count_;
        smallest_ = std::min(smallest_, other.smallest_);
        largest_ = std::max(largest_, other.largest_);
    }

    std::uint64_t count() const { return count_; }
    double mean() const { return mean_; }
    double variance() const { return count_ < 2 ? 0.0 : sum_of_squares_ / static_cast<double>(count_ - 1); }
    double standard_error() const { return std::sqrt(variance() / static_cast<double>(count_)); }

private:
    std::uint64_t count_ = 0;
    double mean_ = 0.0;
    double sum_of_squares_ = 0.0;
    double smallest_ = std::numeric_limits<double>::infinity();
    double largest_ = -std::numeric_limits<double>::infinity();
};

/** A running quantile in constant memory: the P-square algorithm (Jain and Chlamtac, CACM 1985). */
class RunningQuantile {
public:
    explicit RunningQuantile(double p) : wanted_step_{0.0, p / 2, p, (1 + p) / 2, 1.0} {}

    void add(double value) {
        if (filled_ < 5) {
            height_[filled_++] = value;
            std::sort(height_.begin(), height_.begin() + filled_);
            return;
        }
        int cell = 0;
        if (value < height_[0]) {
            height_[0] = value;
        } else if (value >= height_[4]) {
            height_[4] = value;
            cell = 3;
        } else {
            while (value >= height_[cell + 1]) ++cell;
        }
        for (int i = cell + 1; i < 5; ++i) position_[i] += 1;
        ++count_;
        for (int i = 1; i < 4; ++i) adjust(i);
    }

    double value() const { return filled_ < 5 ? height_[filled_ / 2] : height_[2]; }

private:
    void adjust(int i) {
        const double wanted = 1 + (static_cast<double>(count_) + 4) * wanted_step_[i];
        const double gap = wanted - position_[i];
        const bool up = gap >= 1 && position_[i + 1] - position_[i] > 1;
        const bool down = gap <= -1 && position_[i - 1] - position_[i] < -1;
        if (!up && !down) return;
        const double step = up ? 1 : -1;
        const double candidate = parabolic(i, step);
        const bool ordered = height_[i - 1] < candidate && candidate < height_[i + 1];
        height_[i] = ordered ? candidate : linear(i, static_cast<int>(step));
        position_[i] += step;
    }

    double parabolic(int i, double step) const {
        const double left = position_[i] - position_[i - 1], right = position_[i + 1] - position_[i];
        return height_[i] + step / (left + right) *
                                ((left + step) * (height_[i + 1] - height_[i]) / right +
                                 (right - step) * (height_[i] - height_[i - 1]) / left);
    }

    double linear(int i, int step) const {
        return height_[i] + step * (height_[i + step] - height_[i]) / (position_[i + step] - position_[i]);
    }

    std::array<double, 5> height_{};
    std::array<double, 5> position_{1, 2, 3, 4, 5};
    std::array<double, 5> wanted_step_;
    int filled_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace heron

#endif
