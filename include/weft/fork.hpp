// A fork: work that a scope runs beside its body. Its handle awaits, watches and stops it. Scopes make forks: see scope.hpp;
// scope/scope_core.hpp says how they are stored.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/scope/fork_wait.hpp>
#include <weft/detail/scope/scope_core.hpp>
#include <weft/fork_status.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>
#include <weft/task_id.hpp>

namespace weft {

class scope;
struct scope_options;
template <class T>
class fork_view;

/// The handle of work that a scope runs beside its body. Move-only. If it is dropped, the work runs on, and the scope waits for
/// it.
///
///     int n = co_await std::move(f);  // the value, moved out
///     int& n = co_await f;            // the value, which stays in the fork
///     w::fork_view<int> v = f.view(); // for any number of others: co_await v gives a const int&
///
/// Suspends  until the fork has ended.
/// Cancel    a stopped waiter leaves; the fork runs on. If the fork ended stopped, so does the awaiting task.
/// Fails     throws what the fork threw: all that await it get the same exception.
/// Lifetime  inside its scope; a use after that ends the program with a sentence where it can be detected.
/// Threads   one thread at a time uses a handle. request_stop(), done() and status() may be called while the fork runs
///           elsewhere.
/// Cost      the fork's frame is freed when it has ended and its handle is gone.
template <class T = void>
class fork : public detail::knows_roots {
 public:
  using value_type = T;

  fork() noexcept = default;  ///< empty; must not be awaited
  fork(fork&& other) noexcept : word_{std::exchange(other.word_, detail::fork_word{})} {}
  fork& operator=(fork&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~fork() { release(std::exchange(word_, detail::fork_word{})); }

  /// Whether it has a fork: false if empty or moved from.
  explicit operator bool() const noexcept { return static_cast<bool>(word_); }

  /// Whether the fork has ended. Does not wait; false may be out of date.
  bool done() const noexcept { return status() != fork_status::running; }

  /// How the fork has ended, or that it still runs, at the moment of the call. Any thread. An empty handle ends the program
  /// with a sentence.
  fork_status status() const noexcept {
    if (!word_) detail::fail_empty_fork();
    if (word_.has_record()) return word_.record().status();
    return detail::promise_of<T>(word_).is_exception() ? fork_status::failed : fork_status::succeeded;
  }

  /// Its id, also after it has ended; a default one for a fork that ended before fork() returned. Throws std::bad_alloc.
  task_id id() const {
    if (!word_) detail::fail_empty_fork();
    return word_.has_record() ? detail::id_of(word_.record()) : task_id{};
  }

  /// Tells the fork to stop: it ends now if it waits, else at its next wait. Does not wait for its end.
  void request_stop(stop_cause cause = {}) noexcept {
    if (!word_) detail::fail_empty_fork();
    if (word_.has_record()) word_.record().request_stop_because(cause);
  }

  /// Gives a view of its result, which can be copied. Throws std::bad_alloc. Cost: the first view allocates a record if the
  /// fork has none.
  fork_view<T> view();

 private:
  friend scope;
  friend detail::scope_access;

  explicit fork(std::uintptr_t word) noexcept : word_{word} {}

  detail::fork_word word_;
};

/// A copyable handle that shares the result of a fork: `const T& value = co_await view`. For work that several others need.
///
///     auto parsed = s.fork(parse, file).view();
///     s.fork(index, parsed);  s.fork(check, parsed);  // both await the same fork
///
/// Otherwise as a fork. Lifetime: inside its scope, which ends the program with a sentence if a view is left at its end.
template <class T = void>
class fork_view : public detail::knows_roots {
 public:
  using value_type = T;

  fork_view() noexcept = default;  ///< empty
  fork_view(const fork_view& other) noexcept : of_{other.of_} {
    if (of_ != nullptr) of_->of().retain(*of_);
  }
  fork_view(fork_view&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
  fork_view& operator=(fork_view other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  ~fork_view() {
    if (auto* mine = std::exchange(of_, nullptr)) mine->of().drop(*mine);
  }

  explicit operator bool() const noexcept { return of_ != nullptr; }
  bool done() const noexcept { return status() != fork_status::running; }  ///< as fork::done()
  /// As fork::status().
  fork_status status() const noexcept {
    if (of_ == nullptr) detail::fail_empty_fork();
    return of_->status();
  }
  /// As fork::id().
  task_id id() const {
    if (of_ == nullptr) detail::fail_empty_fork();
    return detail::id_of(*of_);
  }

 private:
  friend class fork<T>;
  friend detail::scope_access;

  explicit fork_view(detail::fork_record& of) noexcept : of_{&of} { of.of().retain(of); }

  detail::fork_record* of_ = nullptr;
};

namespace detail {

template <class T>
inline constexpr bool keeps_its_value<fork_view<T>> = true;

struct scope_access {
  template <class R, class F, class... Args>
  static task<R> run(scope_options options, const env* exactly, F f, Args... args);

  /// Starts a fork on this thread at once, also on a pool; where scope::fork_here would throw, once the forkers have suspended.
  template <class T>
  static weft::fork<T> fork_here(scope& in, task<T> work);

  template <class T>
  static weft::fork<T> make(std::uintptr_t word) noexcept {
    return weft::fork<T>{word};
  }
  template <class T>
  static fork_word take(weft::fork<T>& from) noexcept {
    return std::exchange(from.word_, fork_word{});
  }
  template <class T>
  static fork_word word_of(const weft::fork<T>& of) noexcept {
    return of.word_;
  }
  template <class T>
  static fork_word word_of(const fork_view<T>& of) noexcept {
    return fork_word{of.of_ != nullptr ? reinterpret_cast<std::uintptr_t>(of.of_) + 1 : 0};
  }
};

}  // namespace detail

template <class T>
detail::fork_taker<T> operator co_await(fork<T>&& work) noexcept {
  return detail::fork_taker<T>{detail::scope_access::take(work)};
}
template <class T>
detail::fork_reader<T, false> operator co_await(fork<T>& work) noexcept {
  return detail::fork_reader<T, false>{detail::scope_access::word_of(work)};
}
template <class T>
detail::fork_reader<T, true> operator co_await(const fork_view<T>& view) noexcept {
  return detail::fork_reader<T, true>{detail::scope_access::word_of(view)};
}

template <class T>
fork_view<T> fork<T>::view() {
  if (!word_) detail::fail_empty_fork();
  if (!word_.has_record()) {
    detail::scope_core& in = detail::scope_core::of_one_that_ran_through(*detail::promise_of<T>(word_).owner);
    word_ = detail::fork_word{reinterpret_cast<std::uintptr_t>(&in.share(word_.value(), detail::failure_of<T>)) + 1};
  }
  return fork_view<T>{word_.record()};
}

}  // namespace weft
