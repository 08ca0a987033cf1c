// Random programs of coroutines that make, resume, yield, throw and destroy, nested in each other; run with weft's
// coroutines and with Boost.Context's, which must write the same trace. Both have one interpreter.
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/weft_test.hpp"

namespace {

// A coroutine that passes ints, on top of Boost.Context.
class oracle {
 public:
  class yielder {
   public:
    explicit yielder(oracle& of) : of_{&of} {}
    int operator()(int out) {
      if (of_->unwinding_) throw weft::stopped{};
      of_->passed_ = out;
      of_->outside_ = std::move(of_->outside_).resume();
      if (of_->unwinding_) throw weft::stopped{};
      if (of_->thrown_in_) std::rethrow_exception(std::exchange(of_->thrown_in_, nullptr));
      return of_->passed_;
    }

   private:
    oracle* of_;
  };

  template <class F>
  explicit oracle(F f)
      : inside_{[this, f = std::move(f)](boost::context::fiber&& outside) mutable {
          outside_ = std::move(outside);
          yielder yield{*this};
          try {
            if (unwinding_) throw weft::stopped{};
            if (thrown_in_) std::rethrow_exception(std::exchange(thrown_in_, nullptr));
            passed_ = f(yield, passed_);
          } catch (const weft::stopped&) {  // destroyed
          } catch (...) {                   // resume() throws it
            failure_ = std::current_exception();
          }
          done_ = true;
          return std::move(outside_);
        }} {}
  oracle(const oracle&) = delete;
  ~oracle() {
    unwinding_ = true;
    if (!done_) inside_ = std::move(inside_).resume();
  }

  bool done() const { return done_; }
  int resume(int in) {
    passed_ = in;
    inside_ = std::move(inside_).resume();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return passed_;
  }
  int resume_throwing(std::exception_ptr failure) {
    thrown_in_ = std::move(failure);
    return resume(0);
  }

 private:
  int passed_ = 0;
  bool done_ = false, unwinding_ = false;
  std::exception_ptr failure_, thrown_in_;
  boost::context::fiber outside_, inside_;
};

struct weft_coroutine : weft::coroutine<int(int)> {
  using weft::coroutine<int(int)>::coroutine;
};

using trace = std::vector<std::string>;

// A program is a seed: what each coroutine does follows from its own, and from what it was passed.
template <class Coroutine>
class interpreter {
 public:
  trace run(std::uint32_t seed) {
    act(seed, 0, static_cast<typename Coroutine::yielder*>(nullptr));
    return std::move(trace_);
  }

 private:
  struct leaves_a_mark {
    interpreter& in;
    std::uint32_t who;
    ~leaves_a_mark() { in.note("leaves", who); }
  };

  void note(const char* what, std::uint32_t who, int value = 0) {
    trace_.push_back(std::string{what} + ' ' + std::to_string(who) + ' ' + std::to_string(value));
  }

  template <class Yield>
  int act(std::uint32_t seed, int depth, Yield* yield) {
    std::minstd_rand random{seed};
    std::vector<std::unique_ptr<Coroutine>> mine;
    const leaves_a_mark mark{*this, seed};
    int passed = 0;
    for (int step = static_cast<int>(random() % 12); step >= 0; --step) {
      const auto what = random() % 16;
      try {
        if (what < 4 && depth < 4) {
          const auto child = static_cast<std::uint32_t>(random());
          note("makes", child);
          mine.push_back(std::make_unique<Coroutine>([this, child, depth](auto& inner, int first) {
            note("begins", child, first);
            return act(child, depth + 1, &inner);
          }));
        } else if (what < 8 && !mine.empty()) {
          auto& one = mine[random() % mine.size()];
          if (one->done()) continue;
          note("got", seed, one->resume(static_cast<int>(random() % 1000)));
        } else if (what < 9 && !mine.empty()) {
          auto& one = mine[random() % mine.size()];
          if (one->done()) continue;
          note("got", seed, one->resume_throwing(std::make_exception_ptr(static_cast<int>(random() % 1000))));
        } else if (what < 10 && !mine.empty()) {
          mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(random() % mine.size()));
        } else if (what < 14 && yield != nullptr) {
          passed = (*yield)(passed + static_cast<int>(random() % 1000));
          note("passed", seed, passed);
        } else if (what == 15) {
          throw std::runtime_error{std::to_string(random() % 1000)};
        }
      } catch (const std::runtime_error& thrown) {
        note(thrown.what(), seed);
        if (random() % 3 == 0 && depth != 0) throw;
        handle(random, mine, seed);
      } catch (int thrown) {
        note("caught", seed, thrown);
        if (random() % 3 == 0 && depth != 0) throw;
        handle(random, mine, seed);
      }
    }
    return passed;
  }

  // Resumes another while it handles an exception. It does not yield meanwhile: Boost leaves what a thread handles where
  // it is, so that the other side would see it.
  void handle(std::minstd_rand& random, std::vector<std::unique_ptr<Coroutine>>& mine, std::uint32_t seed) {
    note(std::current_exception() ? "handles" : "lost it", seed);
    try {
      if (!mine.empty() && !mine.back()->done())
        note("got", seed, mine.back()->resume(static_cast<int>(random() % 1000)));
    } catch (...) {  // traced: it was there
      note("another", seed);
    }
    note(std::current_exception() ? "handled" : "lost it", seed);
  }

  trace trace_;
};

TEST(coroutine_fuzz, does_what_boost_context_does) {
  std::size_t steps = 0;
  for (std::uint32_t seed = 1; seed != static_cast<std::uint32_t>(test::rounds(10'000)); ++seed) {
    interpreter<weft_coroutine> ours;
    interpreter<oracle> theirs;
    const trace mine = ours.run(seed), expected = theirs.run(seed);
    steps += mine.size();
    ASSERT_EQ(mine, expected) << "seed " << seed;
  }
  EXPECT_GT(steps, static_cast<std::size_t>(test::rounds(10'000)) * 5);
}

}  // namespace
