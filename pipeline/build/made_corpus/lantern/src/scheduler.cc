// SPDX-License-Identifier: MIT
// A cooperative scheduler with timers. Tasks are state machines that say when
// they want to run again; nothing blocks and nothing is preempted.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "lantern/log.hpp"

namespace lantern {

using Ticks = std::uint64_t;

enum class TaskState { kReady, kWaiting, kFinished, kFailed };

struct Verdict {
    TaskState state;
    Ticks wake_after = 0;

    static Verdict again() { return {TaskState::kReady, 0}; }
    static Verdict sleep(Ticks ticks) { return {TaskState::kWaiting, ticks}; }
    static Verdict done() { return {TaskState::kFinished, 0}; }
    static Verdict fail() { return {TaskState::kFailed, 0}; }
};

struct Task {
    std::string name;
    std::function<Verdict(Ticks)> step;
    std::uint32_t id = 0;
    int failures = 0;
};

class Scheduler {
public:
    std::uint32_t add(std::string name, std::function<Verdict(Ticks)> step);
    void run_until(Ticks deadline);
    Ticks now() const { return now_; }

private:
    struct Timer {
        Ticks due;
        std::uint32_t sequence;  // keeps timers that are due together in order of creation
        std::uint32_t task;

        bool operator<(const Timer& other) const {
            return due != other.due ? due > other.due : sequence > other.sequence;
        }
    };

    void run_one(std::uint32_t id);
    void retry_later(Task& task);

    static constexpr int kMaximumFailures = 5;

    std::vector<Task> tasks_;
    std::priority_queue<Timer> timers_;
    Ticks now_ = 0;
    std::uint32_t next_sequence_ = 0;
};

std::uint32_t Scheduler::add(std::string name, std::function<Verdict(Ticks)> step) {
    const auto id = static_cast<std::uint32_t>(tasks_.size());
    tasks_.push_back(Task{std::move(name), std::move(step), id, 0});
    timers_.push(Timer{now_, next_sequence_++, id});
    return id;
}

// Exponential backoff, 1, 2, 4, 8 ticks; after that the task is given up.
void Scheduler::retry_later(Task& task) {
    if (++task.failures >= kMaximumFailures) {
        LANTERN_LOG(error) << "task " << task.name << " failed " << task.failures << " times, giving up";
        return;
    }
    const Ticks delay = Ticks{1} << (task.failures - 1);
    timers_.push(Timer{now_ + delay, next_sequence_++, task.id});
}

void Scheduler::run_one(std::uint32_t id) {
    Task& task = tasks_[id];
    const Verdict verdict = task.step(now_);
    switch (verdict.state) {
        case TaskState::kReady:
            timers_.push(Timer{now_ + 1, next_sequence_++, id});
            break;
        case TaskState::kWaiting:
            timers_.push(Timer{now_ + std::max<Ticks>(1, verdict.wake_after), next_sequence_++, id});
            break;
        case TaskState::kFinished:
            LANTERN_LOG(debug) << "task " << task.name << " finished at " << now_;
            break;
        case TaskState::kFailed:
            retry_later(task);
            break;
    }
}

void Scheduler::run_until(Ticks deadline) {
    while (!timers_.empty() && timers_.top().due <= deadline) {
        const Timer timer = timers_.top();
        timers_.pop();
        now_ = std::max(now_, timer.due);
        run_one(timer.task);
    }
    now_ = deadline;
}

}  // namespace lantern
