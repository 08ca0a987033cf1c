// Random programs of coroutines that make, resume, yield, throw and destroy, nested in each other; run with weft's
// coroutines and with Boost.Context's, which must write the same trace. Both have one interpreter.
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/fuzz.hpp"

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

// A program is what an input decides, in the order in which its coroutines ask, and what they were passed.
template <class Coroutine>
class interpreter {
 public:
  explicit interpreter(const test::choices& chosen) : chosen_{chosen} {}

  trace run() {
    act(0, 0, static_cast<typename Coroutine::yielder*>(nullptr));
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
    std::vector<std::unique_ptr<Coroutine>> mine;
    const leaves_a_mark mark{*this, seed};
    int passed = 0;
    for (std::size_t left = 1 + chosen_.up_to(11); left != 0; --left) {
      const std::size_t what = chosen_.up_to(15);
      try {
        if (what < 4 && depth < 4) {
          const std::uint32_t child = ++made_;
          note("makes", child);
          mine.push_back(std::make_unique<Coroutine>([this, child, depth](auto& inner, int first) {
            note("begins", child, first);
            return act(child, depth + 1, &inner);
          }));
        } else if (what < 8 && !mine.empty()) {
          auto& one = mine[chosen_.up_to(mine.size() - 1)];
          if (one->done()) continue;
          note("got", seed, one->resume(number()));
        } else if (what < 9 && !mine.empty()) {
          auto& one = mine[chosen_.up_to(mine.size() - 1)];
          if (one->done()) continue;
          note("got", seed, one->resume_throwing(std::make_exception_ptr(number())));
        } else if (what < 10 && !mine.empty()) {
          mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(chosen_.up_to(mine.size() - 1)));
        } else if (what < 14 && yield != nullptr) {
          passed = (*yield)(passed + number());
          note("passed", seed, passed);
        } else if (what == 15) {
          throw std::runtime_error{std::to_string(number())};
        }
      } catch (const std::runtime_error& thrown) {
        note(thrown.what(), seed);
        if (chosen_.one_in(3) && depth != 0) throw;
        handle(mine, seed);
      } catch (int thrown) {
        note("caught", seed, thrown);
        if (chosen_.one_in(3) && depth != 0) throw;
        handle(mine, seed);
      }
    }
    return passed;
  }

  // Resumes another while it handles an exception. It does not yield meanwhile: Boost leaves what a thread handles where
  // it is, so that the other side would see it.
  void handle(std::vector<std::unique_ptr<Coroutine>>& mine, std::uint32_t seed) {
    note(std::current_exception() ? "handles" : "lost it", seed);
    try {
      if (!mine.empty() && !mine.back()->done()) note("got", seed, mine.back()->resume(number()));
    } catch (...) {  // traced: it was there
      note("another", seed);
    }
    note(std::current_exception() ? "handled" : "lost it", seed);
  }

  int number() { return static_cast<int>(chosen_.up_to(255)); }

  test::choices chosen_;
  std::uint32_t made_ = 0;
  trace trace_;
};

WEFT_FUZZ(does_what_boost_context_does, 10'000, 300) {
  const trace mine = interpreter<weft_coroutine>{chosen}.run(), expected = interpreter<oracle>{chosen}.run();
  test::must(mine == expected, "the traces differ behind " +
                                   std::to_string(std::ranges::mismatch(mine, expected).in1 - mine.begin()) + " steps");
}

}  // namespace
