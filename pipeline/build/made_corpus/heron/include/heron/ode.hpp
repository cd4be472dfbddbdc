#ifndef HERON_ODE_HPP
#define HERON_ODE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace heron {

using State = std::vector<double>;

struct StepControl {
    double absolute_tolerance = 1e-9;
    double relative_tolerance = 1e-7;
    double smallest_step = 1e-12;
    double largest_step = 1.0;
};

enum class Integration { finished, step_too_small };

/**
 * Bogacki and Shampine's embedded pair of orders 3 and 2 (1989). The last stage
 * of a step is the first of the next, so that an accepted step costs three
 * evaluations of the right-hand side.
 */
template <typename RightHandSide>
class BogackiShampine {
public:
    BogackiShampine(RightHandSide f, StepControl control) : f_(f), control_(control) {}

    Integration integrate(double t, double t_end, State& y) {
        double h = std::min(control_.largest_step, (t_end - t) / 16);
        State k1 = f_(t, y), k2, k3, k4;
        while (t < t_end) {
            h = std::min(h, t_end - t);
            k2 = f_(t + h / 2, combine(y, h / 2, k1));
            k3 = f_(t + 3 * h / 4, combine(y, 3 * h / 4, k2));
            State next = y;
            for (std::size_t i = 0; i < y.size(); ++i) next[i] += h * (2 * k1[i] + 3 * k2[i] + 4 * k3[i]) / 9;
            k4 = f_(t + h, next);
            const double error = scaled_error(y, next, k1, k2, k3, k4, h);
            if (error <= 1.0) {
                t += h;
                y.swap(next);
                k1.swap(k4);
                ++num_accepted_;
            } else {
                ++num_rejected_;
            }
            h = std::min(control_.largest_step, h * std::clamp(0.9 / std::cbrt(std::max(error, 1e-10)), 0.2, 5.0));
            if (h < control_.smallest_step && t < t_end) return Integration::step_too_small;
        }
        return Integration::finished;
    }

    std::size_t num_accepted() const { return num_accepted_; }
    std::size_t num_rejected() const { return num_rejected_; }

private:
    static State combine(const State& y, double h, const State& k) {
        State result(y.size());
        for (std::size_t i = 0; i < y.size(); ++i) result[i] = y[i] + h * k[i];
        return result;
    }

    double scaled_error(const State& y, const State& next, const State& k1, const State& k2, const State& k3,
                        const State& k4, double h) const {
        double worst = 0.0;
        for (std::size_t i = 0; i < y.size(); ++i) {
            const double low_order = y[i] + h * (7 * k1[i] / 24 + k2[i] / 4 + k3[i] / 3 + k4[i] / 8);
            const double size = std::max(std::fabs(y[i]), std::fabs(next[i]));
            const double tolerance = control_.absolute_tolerance + control_.relative_tolerance * size;
            worst = std::max(worst, std::fabs(next[i] - low_order) / tolerance);
        }
        return worst;
    }

    RightHandSide f_;
    StepControl control_;
    std::size_t num_accepted_ = 0;
    std::size_t num_rejected_ = 0;
};

}  // namespace heron

#endif  // HERON_ODE_HPP
