// The promise of an async_generator. Part of async_generator.hpp.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/core/root.hpp>
#include <weft/detail/task/outcome.hpp>
#include <weft/executor.hpp>

namespace weft {
template <class T>
class async_generator;
}  // namespace weft

namespace weft::detail {

// Its outcome is what it shows to the consumer: where the value is, null at the end, or what was thrown.
template <class T>
class async_generator_promise : public awaiting_promise, public outcome<std::add_pointer_t<T>> {
  /// Control goes back to whoever awaits next(), and the body leaves that root.
  struct yielded {
    bool await_ready() const noexcept { return false; }
    WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(
        std::coroutine_handle<async_generator_promise> body) const noexcept {
      async_generator_promise& promise = body.promise();
      root& consumer = *std::exchange(promise.owner, nullptr);
      consumer.top = promise.continuation;
      return transfer(consumer, promise.continuation);
    }
    void await_resume() const noexcept {}
  };

  struct yielded_copy : yielded {
    explicit yielded_copy(const std::remove_reference_t<T>& value) : copy(value) {}
    WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<async_generator_promise> body) noexcept {
      body.promise().set_value(std::addressof(copy));
      return yielded::await_suspend(body);
    }
    std::remove_cvref_t<T> copy;
  };

 public:
  async_generator<T> get_return_object() noexcept {
    return async_generator<T>{std::coroutine_handle<async_generator_promise>::from_promise(*this)};
  }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  final_awaiter final_suspend() const noexcept { return {}; }

  void return_void() noexcept { this->set_value(nullptr); }
  [[gnu::noinline]] void unhandled_exception() noexcept { this->set_exception(caught()); }

  yielded yield_value(T&& value) noexcept {
    this->set_value(std::addressof(value));
    return {};
  }
  // An lvalue, where the consumer may move from what it gets: it gets a copy, which lives in the co_yield expression.
  yielded_copy yield_value(const std::remove_reference_t<T>& value)
    requires std::is_rvalue_reference_v<T&&> &&
             std::constructible_from<std::remove_cvref_t<T>, const std::remove_reference_t<T>&>
  {
    return yielded_copy{value};
  }

  /// By resume_on: where the body goes on from now on. Null: where its consumer is. Gives what was before.
  executor* goes_on_on(executor* where) noexcept { return std::exchange(on_, where); }
  executor* is_on() const noexcept { return on_; }

 private:
  executor* on_ = nullptr;
};

/// In hop.hpp, which is not to be included by who never hops.
bool hop_to(std::coroutine_handle<> self, root& mine, executor& to);

}  // namespace weft::detail
