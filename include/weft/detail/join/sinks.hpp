// Where the values of a when_all go. Part of combine.hpp.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/join/group.hpp>

namespace weft::detail {

/// Where values may go that nobody wants.
using ignores = std::remove_cvref_t<decltype(std::ignore)>;
/// Where values of T may go: to an output iterator, to a function that is called with each, or nowhere.
template <class Into, class T>
concept takes_values =
    std::output_iterator<Into, element<T>> || std::invocable<Into&, element<T>> || std::is_same_v<Into, ignores>;

/// A vector, which `co_await` gives.
template <class T>
struct WEFT_CONTAINERS into_vector {
  template <class Give>
  std::vector<element<T>> take(std::size_t count, Give give) {
    std::vector<element<T>> values;
    values.reserve(count);
    give([&](element<T>&& value) { values.push_back(std::move(value)); });
    return values;
  }
};

/// Where an output iterator says, or to a function, or nowhere: std::ignore.
template <class T, class Out>
struct into {
  template <class Give>
  auto take(std::size_t, Give give) {
    if constexpr (std::output_iterator<Out, element<T>>) {
      give([this](element<T>&& value) {
        *out = std::move(value);
        ++out;
      });
      return std::move(out);
    } else if constexpr (!std::is_same_v<Out, ignores>) {
      give([this](element<T>&& value) { detail::invoke(out, std::move(value)); });
    }
  }

  [[no_unique_address]] Out out;
};

/// `co_await when_all(...)` of children that all give the same type: throws the first failure, or has `sink` take the
/// values, in order. A sink has `take(count, give)`, where `give(put)` calls `put` with each.
template <class Children, class Sink>
class WEFT_TO_BE_AWAITED("when_all does nothing until it is awaited") join_into final : public Children {
 public:
  template <class... Args>
  explicit join_into(Sink&& sink, Args&&... args) : Children{std::forward<Args>(args)...}, sink_{std::move(sink)} {}
  auto await_resume() {
    this->throw_first_failure();
    return sink_.take(this->count(), [this](auto put) { this->give(put); });
  }

 private:
  [[no_unique_address]] Sink sink_;
};

}  // namespace weft::detail
