// What the tests are written with: a test whose body is a coroutine, and things that many of them need.
//
//     WEFT_TEST("gate: a task that waits goes on when it opens") {
//       test::gate door;
//       std::jthread porter{[&] { door.open(); }};
//       EXPECT_EQ(co_await enter(door), 1);
//     }
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <weft/task.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_TEST_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TEST_TSAN 1
#endif
#endif

/// Defines a test whose body is a task<>, run by sync_wait, or by what the file has set test::run_body to. What stands before
/// the colon is the suite's name. In a coroutine EXPECT_* works, ASSERT_* does not, since it returns.
#define WEFT_TEST(sentence)                                                                                          \
  static ::weft::task<> WEFT_CONCAT(weft_test_body_, __LINE__)();                                                    \
  [[maybe_unused]] static const bool WEFT_CONCAT(weft_test_added_, __LINE__) =                                       \
      ::test::add(sentence, __FILE__, __LINE__, [] { ::test::run_body(WEFT_CONCAT(weft_test_body_, __LINE__)()); }); \
  static ::weft::task<> WEFT_CONCAT(weft_test_body_, __LINE__)()

namespace test {

inline void (*run_body)(weft::task<>) = [](weft::task<> body) { weft::sync_wait(std::move(body)); };

inline bool add(std::string_view sentence, const char* file, int line, void (*body)()) {
  class one : public testing::Test {
   public:
    explicit one(void (*body)()) : body_{body} {}
    void TestBody() override { body_(); }

   private:
    void (*body_)();
  };
  const auto colon = sentence.find(": ");
  const std::string suite{sentence.substr(0, colon)}, name{sentence.substr(colon + 2)};
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, file, line,
                        [body]() -> testing::Test* { return new one{body}; });
  return true;
}

/// How many operations a stress test does: fewer where each is instrumented.
constexpr int rounds(int plain) {
#if defined(WEFT_TEST_TSAN) || defined(WEFT_TEST_ASAN)
  return plain / 10;
#else
  return plain;
#endif
}

/// Runs `body` on a thread of its own, with a stack of 256 KiB: what grows the stack by each step ends there.
inline void on_small_stack(std::function<void()> body) {
  struct call {
    std::function<void()> body;
    std::exception_ptr failure;
  } todo{std::move(body), nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  pthread_t thread;
  const int refused = pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        auto& mine = *static_cast<call*>(argument);
        try {
          mine.body();
        } catch (...) {
          mine.failure = std::current_exception();
        }
        return nullptr;
      },
      &todo);
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(refused, 0);
  pthread_join(thread, nullptr);
  if (todo.failure) std::rethrow_exception(todo.failure);
}

/// While this lives there is no chaos (WEFT_CHAOS): for what holds only where no wake-up is late, as the order of several.
class calm {
 public:
  calm() noexcept { weft::detail::wait_watch::begin(nullptr); }
  calm(const calm&) = delete;
  ~calm() { weft::detail::wait_watch::begin(before_); }

 private:
  const weft::detail::wait_watch* before_ = weft::detail::wait_watch::now();
};

/// Lets other threads run until `done()`.
template <class Done>
void until(Done done) {
  while (!done()) std::this_thread::yield();
}

/// Counts what is allocated from it, and fails when told to.
class counting_resource final : public std::pmr::memory_resource {
 public:
  std::size_t allocations = 0;  ///< so far
  std::size_t live = 0;         ///< not yet given back
  std::size_t live_bytes = 0;
  std::size_t fail_after = std::size_t(-1);  ///< this many succeed, then std::bad_alloc

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (allocations == fail_after) throw std::bad_alloc{};
    void* block = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    ++allocations, ++live, live_bytes += bytes;
    return block;
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    --live, live_bytes -= bytes;
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

/// Counts how many objects of it there are: what is left at the end of a test was leaked, below zero destroyed twice.
class counted {
 public:
  explicit counted(std::atomic<int>& alive) noexcept : alive_{&alive} { ++*alive_; }
  counted(const counted& other) noexcept : alive_{other.alive_} { ++*alive_; }
  counted& operator=(const counted&) = default;
  ~counted() { --*alive_; }

 private:
  std::atomic<int>* alive_;
};

/// A value whose move throws when it is moved for the `nth` time.
class fragile {
 public:
  explicit fragile(int nth) noexcept : left_{nth} {}
  fragile(fragile&& other) : left_{other.left_ - 1} {
    if (left_ == 0) throw std::runtime_error{"moved once too often"};
  }

  static weft::task<fragile> made(int nth) { co_return fragile{nth}; }

 private:
  int left_;
};

/// Closed until it is opened by hand. `co_await door` waits for that, and can be stopped.
class gate {
 public:
  /// Opens it for good, and wakes who waits, here. Any thread.
  void open() {
    for (;;) {
      weft::detail::waiter* woken = nullptr;
      {
        std::lock_guard guard{lock_};
        open_ = true;
        while ((woken = line_.pop()) != nullptr) {
          --waiting_;
          if (woken->try_claim()) break;  // else a stop came first: the next
        }
      }
      if (woken == nullptr) return;
      woken->wake();
    }
  }

  /// How many wait now.
  int waiting() const {
    std::lock_guard guard{lock_};
    return waiting_;
  }

 private:
  class awaiter : weft::detail::waiter {
   public:
    explicit awaiter(gate& door) noexcept : waiter{type}, door_{door} {}

    bool await_ready() const noexcept { return false; }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
      weft::detail::root& self = weft::detail::suspending(caller);
      {
        std::lock_guard guard{door_.lock_};
        if (door_.open_) return false;
        if (self.park(*this)) {
          door_.line_.push(*this);
          ++door_.waiting_;
          return true;  // may run elsewhere: touch nothing
        }
      }
      weft::detail::end_stopped(self);
      return true;
    }
    void await_resume() const noexcept {}

   private:
    static weft::detail::on_stop leave(waiter& self) noexcept {
      gate& door = static_cast<awaiter&>(self).door_;
      std::lock_guard guard{door.lock_};
      if (door.line_.remove(self)) --door.waiting_;
      return weft::detail::on_stop::left;
    }
    static constexpr weft::detail::wait_type type{.leave = leave, .name = "gate of a test"};

    gate& door_;
  };

  struct passage : weft::detail::knows_roots {
    gate& door;
    explicit passage(gate& door) noexcept : door{door} {}
    awaiter operator co_await() const noexcept { return awaiter{door}; }
  };
  // Found where a task awaits the gate itself.
  friend awaiter awaiter_in_root(gate& door) noexcept { return awaiter{door}; }

 public:
  /// The same as an object, for functions that take an awaitable.
  passage pass() noexcept { return passage{*this}; }

 private:
  mutable std::mutex lock_;
  weft::detail::waiter_line line_;
  int waiting_ = 0;
  bool open_ = false;
};

/// Calls itself `depth` levels deep, then awaits `leaf()`; each level adds one to what comes back.
template <class Leaf>
weft::task<long> deep(long depth, Leaf& leaf) {
  if (depth == 0) co_return co_await leaf();
  co_return 1 + co_await deep(depth - 1, leaf);
}

}  // namespace test
