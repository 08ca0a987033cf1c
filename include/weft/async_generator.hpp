// Asynchronous generators: coroutines that may co_await like a task, and co_yield like a generator.
//
//     weft::async_generator<std::string> lines(stream& in) {
//       while (auto line = co_await in.read_line()) co_yield std::move(*line);
//     }
//     while (auto* line = co_await all.next()) print(*line);
//
// `co_await all.next()` runs the body in the consumer's root, like an awaited task: the body's frame is the innermost one until
// it yields, ends or fails; then the consumer goes on. Between two calls the body belongs to no root. So each value may go to
// another consumer, and a generator that is dropped is destroyed where it stands.
//
// A stop that unwinds the consumer while the body waits destroys the body's frame first (it is the inner one), and then the
// awaiter of next(), which tells the generator that its body is gone. The generator itself may be in a frame far out.
//
// An adaptor is an async_generator around an async_generator: for each level, a value costs an await. Rejected: (a) to fuse
// adaptors at compile time, as std::views do: their types would be in every signature, and most sources wait for something that
// takes longer. (b) A source that runs ahead of its consumer: that is what a channel is for.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/config.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/task/async_generator_promise.hpp>
#include <weft/detail/task/async_stages.hpp>
#include <weft/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

/// The return type of a coroutine that yields values of type T, and may wait before each.
///
/// As with generator<T>, the consumer gets a T to move from (co_yield of an lvalue yields a copy); for a T& or const T& it gets
/// the very object that was yielded.
///
/// Suspends  its body, after each co_yield, until the next value is asked for. The body does not start before the first next().
/// Cancel    a stop while the body waits destroys the body. The generator is at its end then.
/// Fails     what the body throws is thrown at the co_await of next(). The generator is at its end then.
/// Lifetime  a value lives until the next one is asked for. References that the body took as parameters outlive the generator.
/// Threads   one consumer at a time. The body runs in the consumer's root: on its executor, or where resume_on has moved the
///           body. The consumer always resumes on its own executor.
/// Cost      a value: that of awaiting a task whose frame exists already. A generator: one frame. Adaptors hold their sources;
///           a chain of any length is destroyed in bounded stack.
template <class T>
class WEFT_TO_BE_AWAITED("an async_generator runs only while its values are awaited") WEFT_COROUTINE_TYPE
    async_generator {
  class next_awaiter;
  class begin_awaiter;
  class increment_awaiter;

 public:
  using promise_type = detail::async_generator_promise<T>;
  using value_type = std::remove_cvref_t<T>;
  class iterator;

  async_generator() noexcept = default;  ///< empty: at its end
  async_generator(async_generator&& other) noexcept : body_{std::exchange(other.body_, nullptr)} { expect_at_rest(); }
  async_generator& operator=(async_generator&& other) noexcept {
    std::swap(body_, other.body_);
    expect_at_rest();
    other.expect_at_rest();
    return *this;
  }
  ~async_generator() {
    if (body_) detail::destroy_frame(body_);
  }

  /// Whether there is a body: false if it was moved from, or ended by a stop.
  explicit operator bool() const noexcept { return body_ != nullptr; }

  /// Runs the body to its next value, and gives a pointer to that; null at the end, and from then on. Must not be called by the
  /// body.
  [[nodiscard("nothing happens until it is awaited")]] next_awaiter next() noexcept { return next_awaiter{*this}; }

  /// The same, spelled with iterators:
  ///
  ///     for (auto it = co_await all.begin(); it != all.end(); co_await ++it) print(*it);
  [[nodiscard("nothing happens until it is awaited")]] begin_awaiter begin() noexcept { return begin_awaiter{*this}; }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend promise_type;

  explicit async_generator(std::coroutine_handle<promise_type> body) noexcept : body_{body} {}

  // Whoever awaits a value refers to this object.
  void expect_at_rest() const noexcept {
    WEFT_EXPECTS(body_ == nullptr || body_.promise().owner == nullptr || body_.done(),
                 "an async_generator was moved while a consumer waits for its value, or by its own body");
  }

  std::coroutine_handle<promise_type> body_;  // null: empty, moved from, or ended by a stop
};

// ---- adaptors -------------------------------------------------------------------------------------------------------
//
// Each owns its source. A function may return a value, or something that can be awaited, which is then awaited. Called without
// a source, each gives what may stand at the right of a `|`: `numbers() | transform(f) | take(3) | collect()`.
//
// With g++ 12, give a function object that has a destructor a name, and pass it as an lvalue, which is copied: a temporary in a
// co_await expression would be destroyed twice.

/// Yields fn(value) for each value.
template <class T, class Fn>
WEFT_COROUTINE_TAKES_OVER async_generator<detail::call_result<Fn, T&&>> transform(async_generator<T> source, Fn&& fn);
template <class Fn>
detail::transforming<std::decay_t<Fn>> transform(Fn&& fn);

/// Yields the values for which keep(value) is true.
template <class T, class Fn>
WEFT_COROUTINE_TAKES_OVER async_generator<T> filter(async_generator<T> source, Fn&& keep);
template <class Fn>
detail::filtering<std::decay_t<Fn>> filter(Fn&& keep);

/// Yields the first `count` values, and does not run its source beyond them.
template <class T>
WEFT_COROUTINE_TAKES_OVER async_generator<T> take(async_generator<T> source, std::size_t count);
detail::taking take(std::size_t count) noexcept;

/// Yields the values of the first generator, then those of the second, and so on.
template <class T, std::same_as<async_generator<T>>... Rest>
WEFT_COROUTINE_TAKES_OVER async_generator<T> concat(async_generator<T> first, Rest... rest);
template <class T>
async_generator<T> concat(std::vector<async_generator<T>> sources);

/// Folds the values: gives fn(... fn(fn(init, first), second) ..., last); without fn, the sum.
template <class T, class Result, class Fn>
WEFT_COROUTINE_TAKES_OVER task<Result> accumulate(async_generator<T> source, Result init, Fn&& fn);
template <class T, class Result>
WEFT_COROUTINE_TAKES_OVER task<Result> accumulate(async_generator<T> source, Result init);
template <class Result, class Fn>
detail::accumulating<Result, std::decay_t<Fn>> accumulate(Result init, Fn&& fn);

/// Gives all values as a vector.
template <class T>
WEFT_COROUTINE_TAKES_OVER task<std::vector<std::remove_cvref_t<T>>> collect(async_generator<T> source);
WEFT_CONTAINERS detail::collecting collect() noexcept;

// ---- implementation: the generator ----------------------------------------------------------------------------------

template <class T>
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") async_generator<T>::next_awaiter
    : public detail::knows_roots {
 public:
  explicit next_awaiter(async_generator& from) noexcept : from_{&from} {}
  next_awaiter(const next_awaiter&) = default;  // before it is awaited
  ~next_awaiter() {
    if (!waits_) return;
    detail::destroy_frame(from_->body_);  // it was unwound just now, and so is the frame that we are in
    from_->body_ = nullptr;
  }

  bool await_ready() const noexcept { return from_->body_ == nullptr || from_->body_.done(); }

  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> consumer) {
    promise_type& promise = from_->body_.promise();
    WEFT_EXPECTS(promise.owner == nullptr,
                 "an async_generator was asked for a value while another consumer waits, or by its own body");
    if (promise.is_on() != nullptr) [[unlikely]]
      return suspend_elsewhere(detail::suspending(consumer), consumer);
    detail::root& self = *consumer.promise().owner;
    promise.continuation = consumer;
    promise.owner = &self;
    self.top = from_->body_;
    waits_ = true;
    return detail::transfer(self, from_->body_);
  }

  std::add_pointer_t<T> await_resume() {
    if (!std::exchange(waits_, false)) return nullptr;
    promise_type& promise = from_->body_.promise();
    if (promise.owner != nullptr) promise.owner->top = promise.continuation;  // it has ended, and lives on
    return promise.take();
  }

 protected:
  async_generator* from_;

 private:
  // The same where resume_on has moved the body to another executor. Throws std::bad_alloc; then the body is suspended as
  // before.
  [[gnu::noinline]] std::coroutine_handle<> suspend_elsewhere(detail::root& self, std::coroutine_handle<> consumer) {
    const auto body = from_->body_;
    promise_type& promise = body.promise();
    promise.continuation = consumer;
    promise.owner = &self;
    self.top = body;
    waits_ = true;
    try {
      if (detail::hop_to(body, self, *promise.is_on())) return std::noop_coroutine();  // this may be gone by now
    } catch (...) {
      promise.owner = nullptr;
      self.top = consumer;
      waits_ = false;
      throw;
    }
    return detail::transfer(self, body);
  }

  bool waits_ = false;
};

/// An iterator of an async_generator.
template <class T>
class async_generator<T>::iterator {
 public:
  using value_type = async_generator::value_type;
  using difference_type = std::ptrdiff_t;

  T&& operator*() const noexcept { return static_cast<T&&>(*value()); }
  std::add_pointer_t<T> operator->() const noexcept { return value(); }

  /// When it is awaited, goes on to the next value.
  [[nodiscard("co_await ++it")]] increment_awaiter operator++() noexcept { return increment_awaiter{*this}; }

  friend bool operator==(const iterator& self, std::default_sentinel_t) noexcept { return self.value_ == nullptr; }

 private:
  friend begin_awaiter;
  friend increment_awaiter;
  iterator(async_generator& from, std::add_pointer_t<T> value) noexcept : from_{&from}, value_{value} {}

  std::add_pointer_t<T> value() const noexcept {
    WEFT_EXPECTS(value_ != nullptr,
                 "an iterator of an async_generator was dereferenced at the end, or while its ++ is awaited");
    return value_;
  }

  async_generator* from_;
  std::add_pointer_t<T> value_;  // null at the end, and while the next one is awaited
};

template <class T>
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") async_generator<T>::begin_awaiter
    : public next_awaiter {
 public:
  using next_awaiter::next_awaiter;
  iterator await_resume() { return iterator{*this->from_, next_awaiter::await_resume()}; }
};

template <class T>
class WEFT_TO_BE_AWAITED("co_await ++it") async_generator<T>::increment_awaiter : public next_awaiter {
 public:
  explicit increment_awaiter(iterator& it) noexcept : next_awaiter{*it.from_}, it_{&it} {}
  bool await_ready() const noexcept {
    it_->value_ = nullptr;  // for good, if the body throws
    return next_awaiter::await_ready();
  }
  iterator& await_resume() {
    it_->value_ = next_awaiter::await_resume();
    return *it_;
  }

 private:
  iterator* it_;
};

// ---- implementation: the adaptors -----------------------------------------------------------------------------------

template <class Fn>
detail::transforming<std::decay_t<Fn>> transform(Fn&& fn) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Fn);
  return detail::transforming<std::decay_t<Fn>>{std::forward<Fn>(fn)};
}
template <class T, class Fn>
async_generator<detail::call_result<Fn, T&&>> transform(async_generator<T> source, Fn&& fn) {
  return std::move(source) | transform(std::forward<Fn>(fn));
}

template <class Fn>
detail::filtering<std::decay_t<Fn>> filter(Fn&& keep) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Fn);
  return detail::filtering<std::decay_t<Fn>>{std::forward<Fn>(keep)};
}
template <class T, class Fn>
async_generator<T> filter(async_generator<T> source, Fn&& keep) {
  return std::move(source) | filter(std::forward<Fn>(keep));
}

inline detail::taking take(std::size_t count) noexcept { return detail::taking{count}; }
template <class T>
async_generator<T> take(async_generator<T> source, std::size_t count) {
  return std::move(source) | take(count);
}

template <class T>
async_generator<T> concat(std::vector<async_generator<T>> sources) {
  for (auto& source : sources)
    while (auto* value = co_await source.next()) co_yield static_cast<T&&>(*value);
}
template <class T, std::same_as<async_generator<T>>... Rest>
async_generator<T> concat(async_generator<T> first, Rest... rest) {
  std::vector<async_generator<T>> sources;
  sources.reserve(1 + sizeof...(rest));
  sources.push_back(std::move(first));
  (sources.push_back(std::move(rest)), ...);
  return concat(std::move(sources));
}

template <class Result, class Fn>
detail::accumulating<Result, std::decay_t<Fn>> accumulate(Result init, Fn&& fn) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Fn);
  return {std::move(init), std::forward<Fn>(fn)};
}
template <class T, class Result, class Fn>
task<Result> accumulate(async_generator<T> source, Result init, Fn&& fn) {
  return std::move(source) | accumulate(std::move(init), std::forward<Fn>(fn));
}
template <class T, class Result>
task<Result> accumulate(async_generator<T> source, Result init) {
  return accumulate(std::move(source), std::move(init),
                    [](Result&& sum, T&& value) { return std::move(sum) + static_cast<T&&>(value); });
}

inline detail::collecting collect() noexcept { return {}; }
template <class T>
task<std::vector<std::remove_cvref_t<T>>> collect(async_generator<T> source) {
  return std::move(source) | collect();
}

}  // namespace weft
