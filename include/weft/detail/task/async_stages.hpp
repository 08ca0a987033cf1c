// What the adaptors of an async_generator are made of: what stands right of a `|`. Part of async_generator.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/config.hpp>
#include <weft/detail/task/async_generator_promise.hpp>
#include <weft/detail/task/pipe.hpp>
#include <weft/task.hpp>

namespace weft {
template <class T>
class async_generator;
}  // namespace weft

namespace weft::detail {

/// What fn(args...) gives, at once or when it is awaited.
template <class Fn, class... Args>
using call_result = outcome_of_call<std::decay_t<Fn>&, Args...>;

/// Base of what stands right of a `|`: an adaptor's parameters, and its coroutine `run(source, parameters)`.
struct async_stage {};

template <class T, std::derived_from<async_stage> Stage>
WEFT_COROUTINE_TAKES_OVER auto operator|(async_generator<T> source, Stage stage) {
  return Stage::run(std::move(source), std::move(stage));
}

template <class Fn>
struct transforming : async_stage {
  explicit transforming(auto&& from) : fn(std::forward<decltype(from)>(from)) {}

  template <class T>
  static async_generator<call_result<Fn, T&&>> run(async_generator<T> source, transforming self) {
    while (auto* value = co_await source.next()) {
      auto&& made = call(self.fn, static_cast<T&&>(*value));
      co_yield co_await std::forward<decltype(made)>(made);
    }
  }

  Fn fn;
};

template <class Fn>
struct filtering : async_stage {
  explicit filtering(auto&& from) : keep(std::forward<decltype(from)>(from)) {}

  template <class T>
  static async_generator<T> run(async_generator<T> source, filtering self) {
    while (auto* value = co_await source.next()) {
      auto&& kept = call(self.keep, std::as_const(*value));
      if (co_await std::forward<decltype(kept)>(kept)) co_yield static_cast<T&&>(*value);
    }
  }

  Fn keep;
};

struct taking : async_stage {
  explicit taking(std::size_t how_many) noexcept : count{how_many} {}

  template <class T>
  static async_generator<T> run(async_generator<T> source, taking self) {
    for (; self.count > 0; --self.count) {
      auto* value = co_await source.next();
      if (value == nullptr) break;
      co_yield static_cast<T&&>(*value);
    }
  }

  std::size_t count;
};

template <class Result, class Fn>
struct accumulating : async_stage {
  accumulating(Result&& init, auto&& from) : result(std::move(init)), fn(std::forward<decltype(from)>(from)) {}

  template <class T>
  static task<Result> run(async_generator<T> source, accumulating self) {
    while (auto* value = co_await source.next()) {
      auto&& next = call(self.fn, std::move(self.result), static_cast<T&&>(*value));
      self.result = co_await std::forward<decltype(next)>(next);
    }
    co_return std::move(self.result);
  }

  Result result;
  Fn fn;
};

struct WEFT_CONTAINERS collecting : async_stage {
  template <class T>
  static task<std::vector<std::remove_cvref_t<T>>> run(async_generator<T> source, collecting) {
    std::vector<std::remove_cvref_t<T>> values;
    while (auto* value = co_await source.next()) values.push_back(static_cast<T&&>(*value));
    co_return values;
  }
};

}  // namespace weft::detail
