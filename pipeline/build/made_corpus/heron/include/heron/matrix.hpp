#ifndef HERON_MATRIX_HPP
#define HERON_MATRIX_HPP

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace heron {

/** A dense matrix in row-major order. */
class Matrix {
public:
    Matrix(std::size_t rows, std::size_t columns, double value = 0.0)
        : rows_(rows), columns_(columns), data_(rows * columns, value) {}

    static Matrix identity(std::size_t size) {
        Matrix result(size, size);
        for (std::size_t i = 0; i < size; ++i) result(i, i) = 1.0;
        return result;
    }

    double& operator()(std::size_t row, std::size_t column) { return data_[row * columns_ + column]; }
    double operator()(std::size_t row, std::size_t column) const { return data_[row * columns_ + column]; }

    std::size_t rows() const { return rows_; }
    std::size_t columns() const { return columns_; }

private:
    std::size_t rows_, columns_;
    std::vector<double> data_;
};

inline Matrix operator*(const Matrix& a, const Matrix& b) {
    if (a.columns() != b.rows()) throw std::invalid_argument("shapes do not fit");
    Matrix product(a.rows(), b.columns());
    // The middle loop runs over the shared axis so that both inner accesses are contiguous.
    for (std::size_t i = 0; i < a.rows(); ++i) {
        for (std::size_t k = 0; k < a.columns(); ++k) {
            const double scale = a(i, k);
            for (std::size_t j = 0; j < b.columns(); ++j) product(i, j) += scale * b(k, j);
        }
    }
    return product;
}

/** LU decomposition with partial pivoting, in place: P A = L U. */
class LuDecomposition {
public:
    explicit LuDecomposition(Matrix a) : lu_(std::move(a)), order_(lu_.rows()) {
        if (lu_.rows() != lu_.columns()) throw std::invalid_argument("a square matrix is expected");
        for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
        for (std::size_t k = 0; k < lu_.rows(); ++k) eliminate(k);
    }

    double determinant() const {
        double product = sign_;
        for (std::size_t i = 0; i < lu_.rows(); ++i) product *= lu_(i, i);
        return product;
    }

    std::vector<double> solve(const std::vector<double>& b) const {
        const std::size_t n = lu_.rows();
        std::vector<double> x(n);
        for (std::size_t i = 0; i < n; ++i) {
            x[i] = b[order_[i]];
            for (std::size_t j = 0; j < i; ++j) x[i] -= lu_(i, j) * x[j];
        }
        for (std::size_t i = n; i-- > 0;) {
            for (std::size_t j = i + 1; j < n; ++j) x[i] -= lu_(i, j) * x[j];
            x[i] /= lu_(i, i);
        }
        return x;
    }

private:
    void eliminate(std::size_t k) {
        std::size_t pivot = k;
        for (std::size_t i = k + 1; i < lu_.rows(); ++i) {
            if (std::fabs(lu_(i, k)) > std::fabs(lu_(pivot, k))) pivot = i;
        }
        if (lu_(pivot, k) == 0.0) throw std::domain_error("the matrix is singular");
        if (pivot != k) swap_rows(pivot, k);
        for (std::size_t i = k + 1; i < lu_.rows(); ++i) {
            const double factor = lu_(i, k) /= lu_(k, k);
            for (std::size_t j = k + 1; j < lu_.columns(); ++j) lu_(i, j) -= factor * lu_(k, j);
        }
    }

    void swap_rows(std::size_t a, std::size_t b) {
        for (std::size_t j = 0; j < lu_.columns(); ++j) std::swap(lu_(a, j), lu_(b, j));
        std::swap(order_[a], order_[b]);
        sign_ = -sign_;
    }

    Matrix lu_;
    std::vector<std::size_t> order_;
    double sign_ = 1.0;
};

}  // namespace heron

#endif
