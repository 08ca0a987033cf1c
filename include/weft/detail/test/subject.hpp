// What the test kit runs, once or many times: a scenario, its task and the root of that, without their types. Part of test.hpp.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <weft/detail/core/top_root.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft::test { struct run_options; }  // namespace weft::test

namespace weft::test::detail {

class world;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

/// The root of a run.
class tested_root : public weft::detail::top_root {
 public:
  /// Runs it, here, up to its first wait. `in` gives its environment.
  explicit tested_root(world& in, end_function done) noexcept;

  bool over() const noexcept { return over_.load(std::memory_order_acquire); }  // <- over (no model: the kit's)

 protected:
  ~tested_root() = default;
  void end() noexcept;

 private:
  //   edge over  the outcome  ->  the world's thread
  std::atomic<bool> over_{false};
};

template <class T>
class tested_root_of final : public tested_root {
 public:
  tested_root_of(world& in, task<T>&& work) noexcept
      : tested_root{in, ended}, frame_{weft::detail::task_access::release(std::move(work))} {
    adopt(frame_, frame_.promise());
  }
  ~tested_root_of() = default;

  result<T>& outcome() noexcept { return *how_; }  // when it is over

 private:
  static void ended(root& self, bool stopped) noexcept {
    auto& mine = static_cast<tested_root_of&>(self);
    if (stopped) {
      mine.how_.emplace(weft::stopped{});
    } else {
      mine.how_.emplace(mine.frame_.promise().take_result());
      mine.frame_.destroy();
    }
    mine.end();  // mine may be gone after this line
  }

  std::coroutine_handle<weft::detail::task_promise<T>> frame_;
  std::optional<result<T>> how_;
};

/// What is run, once or many times, without its types.
class subject {
 public:
  virtual ~subject() = default;
  /// Makes a new scenario, its task and its root. May throw what making them throws.
  virtual tested_root& make(world& in) = 0;
  /// How it ended: null, or what it threw.
  virtual bool was_stopped() = 0;
  virtual std::exception_ptr thrown() = 0;
  /// The scenario's own check. False: it has none that looks at the outcome.
  virtual bool check() = 0;
  /// Destroys root and scenario, in this order.
  virtual void clear() = 0;
  /// Keeps both for ever: something that waits in them will never end.
  virtual void abandon() noexcept = 0;

 protected:
  subject() = default;
  subject(const subject&) = delete;
};

/// Makes scenarios: objects with a run(). What makes tasks is one that has no state.
template <class Scenario>
class subject_of final : public subject {
  using work = decltype(weft::detail::as_task(std::declval<Scenario&>().run()));
  using value_type = typename work::value_type;

  struct state {
    template <class Make>
    explicit state(Make& make) : scenario(make()) {}
    Scenario scenario;
    std::optional<tested_root_of<value_type>> root;
  };

 public:
  using make_function = Scenario (*)(const void* from);
  subject_of(make_function how, const void* from) noexcept : make_{how}, from_{from} {}

  tested_root& make(world& in) override {
    auto made = [this] { return make_(from_); };
    state_ = std::make_unique<state>(made);
    state_->root.emplace(in, weft::detail::as_task(state_->scenario.run()));
    return *state_->root;
  }
  bool was_stopped() override { return state_->root->outcome().is_stopped(); }
  std::exception_ptr thrown() override {
    auto& how = state_->root->outcome();
    return how.has_value() || how.is_stopped() ? nullptr : how.exception();
  }
  bool check() override {
    if constexpr (requires(Scenario& s, const result<value_type>& how) { s.check(how); }) {
      state_->scenario.check(std::as_const(state_->root->outcome()));
      return true;
    } else {
      if constexpr (requires(Scenario& s) { s.check(); }) state_->scenario.check();
      return false;
    }
  }
  void clear() override {
    if (state_ != nullptr) state_->root.reset();
    state_.reset();
  }
  void abandon() noexcept override { static_cast<void>(state_.release()); }

  result<value_type>& outcome() { return state_->root->outcome(); }

 private:
  make_function make_;
  const void* from_;
  std::unique_ptr<state> state_;
};

/// A function that makes something to await, as a scenario.
template <class F>
struct plain_scenario {
  const F* make;
  auto run() { return (*make)(); }
};

void run_once(subject& what, const run_options& options);

/// Prints the seed if a body fails: by an exception, or in the eyes of the failure probe.
class names_seed {
 public:
  explicit names_seed(std::uint64_t seed) noexcept;
  names_seed(const names_seed&) = delete;
  ~names_seed();
  bool failed() const noexcept;

 private:
  std::uint64_t seed_;
  int exceptions_;  // that were in flight before
};

}  // namespace weft::test::detail
