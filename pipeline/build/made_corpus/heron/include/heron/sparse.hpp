#ifndef HERON_SPARSE_HPP
#define HERON_SPARSE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

namespace heron {

/// One entry while a matrix is assembled. Entries at one place are added up.
struct Triplet {
    std::size_t row;
    std::size_t column;
    double value;
};

/// Compressed sparse rows. Immutable once built.
class SparseMatrix {
public:
    SparseMatrix(std::size_t rows, std::vector<Triplet> entries) : row_starts_(rows + 1, 0) {
        std::sort(entries.begin(), entries.end(), [](const Triplet& a, const Triplet& b) {
            return std::tie(a.row, a.column) < std::tie(b.row, b.column);
        });
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const Triplet& entry = entries[i];
            const bool repeated = i > 0 && entries[i - 1].row == entry.row && entries[i - 1].column == entry.column;
            if (repeated) {
                values_.back() += entry.value;
                continue;
            }
            columns_.push_back(entry.column);
            values_.push_back(entry.value);
            ++row_starts_[entry.row + 1];
        }
        for (std::size_t row = 0; row < rows; ++row) row_starts_[row + 1] += row_starts_[row];
    }

    std::size_t rows() const { return row_starts_.size() - 1; }
    std::size_t num_nonzero() const { return values_.size(); }

    void multiply(const std::vector<double>& x, std::vector<double>& y) const {
        for (std::size_t row = 0; row < rows(); ++row) {
            double sum = 0.0;
            for (std::size_t k = row_starts_[row]; k < row_starts_[row + 1]; ++k) sum += values_[k] * x[columns_[k]];
            y[row] = sum;
        }
    }

    std::vector<double> diagonal() const {
        std::vector<double> result(rows(), 0.0);
        for (std::size_t row = 0; row < rows(); ++row) {
            for (std::size_t k = row_starts_[row]; k < row_starts_[row + 1]; ++k) {
                if (columns_[k] == row) result[row] = values_[k];
            }
        }
        return result;
    }

private:
    std::vector<std::size_t> row_starts_;
    std::vector<std::size_t> columns_;
    std::vector<double> values_;
};

inline double inner(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

/// Conjugate gradients with Jacobi preconditioning, for symmetric positive definite matrices. Returns the number of
/// iterations, or -1 when `max_iterations` were not enough.
inline int conjugate_gradients(const SparseMatrix& a, const std::vector<double>& b, std::vector<double>& x,
                               double tolerance, int max_iterations) {
    const std::size_t n = b.size();
    const std::vector<double> diagonal = a.diagonal();
    std::vector<double> r(n), z(n), p(n), ap(n);
    a.multiply(x, ap);
    for (std::size_t i = 0; i < n; ++i) {
        r[i] = b[i] - ap[i];
        p[i] = z[i] = r[i] / diagonal[i];
    }
    double rz = inner(r, z);
    const double goal = tolerance * std::sqrt(inner(b, b));
    for (int iteration = 0; iteration < max_iterations; ++iteration) {
        if (std::sqrt(inner(r, r)) <= goal) return iteration;
        a.multiply(p, ap);
        const double alpha = rz / inner(p, ap);
        for (std::size_t i = 0; i < n; ++i) {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
            z[i] = r[i] / diagonal[i];
        }
        const double rz_next = inner(r, z);
        for (std::size_t i = 0; i < n; ++i) p[i] = z[i] + rz_next / rz * p[i];
        rz = rz_next;
    }
    return -1;
}

}  // namespace heron

#endif
