#include <cmath>
#include <cstddef>
#include <vector>

#include "heron/vec3.hpp"

namespace heron {

struct Body {
    Vec3d position;
    Vec3d velocity;
    double mass;
};

/* Softened gravity: close encounters do not blow up, at the price of a force
 * that is too weak within `softening` of a body. */
std::vector<Vec3d> accelerations(const std::vector<Body>& bodies, double softening) {
    std::vector<Vec3d> result(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        for (std::size_t j = i + 1; j < bodies.size(); ++j) {
            const Vec3d apart = bodies[j].position - bodies[i].position;
            const double square = dot(apart, apart) + softening * softening;
            const double inverse_cube = 1.0 / (square * std::sqrt(square));
            result[i] += (bodies[j].mass * inverse_cube) * apart;
            result[j] += (-bodies[i].mass * inverse_cube) * apart;
        }
    }
    return result;
}

double total_energy(const std::vector<Body>& bodies, double softening) {
    double energy = 0.0;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        energy += 0.5 * bodies[i].mass * dot(bodies[i].velocity, bodies[i].velocity);
        for (std::size_t j = i + 1; j < bodies.size(); ++j) {
            const Vec3d apart = bodies[j].position - bodies[i].position;
            energy -= bodies[i].mass * bodies[j].mass / std::sqrt(dot(apart, apart) + softening * softening);
        }
    }
    return energy;
}

/* Leapfrog (kick, drift, kick). Symplectic: the energy oscillates and does not drift. */
void leapfrog(std::vector<Body>& bodies, double step, int num_steps, double softening) {
    std::vector<Vec3d> a = accelerations(bodies, softening);
    for (int n = 0; n < num_steps; ++n) {
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            bodies[i].velocity += (step / 2) * a[i];
            bodies[i].position += step * bodies[i].velocity;
        }
        a = accelerations(bodies, softening);
        for (std::size_t i = 0; i < bodies.size(); ++i) bodies[i].velocity += (step / 2) * a[i];
    }
}

}  // namespace heron
