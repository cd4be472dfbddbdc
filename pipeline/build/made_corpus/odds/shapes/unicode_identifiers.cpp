#include <cmath>
#include <numbers>

namespace géométrie {

constexpr double π = std::numbers::pi;

struct Größe {
    double länge, breite;
    double fläche() const { return länge * breite; }
};

/* Surface d’un cercle de rayon ρ. */
inline double aire(double ρ) {
    return π * ρ * ρ;
}

inline double 距離(double x, double y) {
    return std::sqrt(x * x + y * y);
}

const char* const 絵文字 = "🦆 swims, 🪿 follows";

}  // namespace géométrie
