// Copyright 2023 The Quarry Authors <authors@quarry-corpus.net>.
#ifndef QUARRY_NET_RETRY_HPP_
#define QUARRY_NET_RETRY_HPP_

#include <chrono>
#include <functional>
#include <random>

namespace quarry {
namespace net {

enum class Attempt { kSucceeded, kRetry, kGiveUp };

struct RetryPolicy {
  int max_attempts = 6;
  std::chrono::milliseconds first_delay{50};
  std::chrono::milliseconds longest_delay{10'000};
  double factor = 2.0;
};

// "Full jitter": each delay is drawn evenly from zero to the exponential bound,
// so that clients which failed together do not come back together.
template <class Generator>
class Retrier {
 public:
  using Sleep = std::function<void(std::chrono::milliseconds)>;

  Retrier(RetryPolicy policy, Generator& generator, Sleep sleep)
      : policy_(policy), generator_(generator), sleep_(std::move(sleep)) {}

  template <class Operation>
  bool Run(Operation&& operation) {
    auto bound = policy_.first_delay;
    for (int attempt = 1; attempt <= policy_.max_attempts; ++attempt) {
      switch (operation(attempt)) {
        case Attempt::kSucceeded: return true;
        case Attempt::kGiveUp: return false;
        case Attempt::kRetry: break;
      }
      if (attempt == policy_.max_attempts) break;
      sleep_(Draw(bound));
      bound = Grow(bound);
    }
    return false;
  }

 private:
  std::chrono::milliseconds Draw(std::chrono::milliseconds bound) {
    std::uniform_int_distribution<std::chrono::milliseconds::rep> delay(0, bound.count());
    return std::chrono::milliseconds(delay(generator_));
  }

  std::chrono::milliseconds Grow(std::chrono::milliseconds bound) const {
    const auto grown = std::chrono::duration_cast<std::chrono::milliseconds>(bound * policy_.factor);
    return grown < policy_.longest_delay ? grown : policy_.longest_delay;
  }

  RetryPolicy policy_;
  Generator& generator_;
  Sleep sleep_;
};

}  // namespace net
}  // namespace quarry

#endif
