// An array that is passed between the library and programs. A std::vector can't be: in libstdc++'s debug mode (_GLIBCXX_DEBUG),
// which each translation unit chooses for itself, it has another layout.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <weft/detail/base/standard.hpp>

namespace weft {

/// An array of fixed size, which the library makes. Programs read it, copy it, or convert it to a std::vector.
///
///     std::vector<w::async_frame> stack = child.stack;
///
/// Fails  making and copying one throws std::bad_alloc.
template <class T>
class items {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = const T&;
  using const_reference = const T&;
  using iterator = const T*;
  using const_iterator = const T*;

  items() = default;
  /// `count` values, each as T{}.
  explicit items(std::size_t count) : all_{count != 0 ? new T[count]() : nullptr}, count_{count} {}
  /// Copies of the values.
  items(const T* first, const T* last) : items{static_cast<std::size_t>(last - first)} {
    std::copy(first, last, all_.get());
  }
  template <std::ranges::contiguous_range From>
    requires(!std::is_same_v<From, items>) && std::is_same_v<std::ranges::range_value_t<From>, T>
  items(const From& from)  // NOLINT: a std::vector<T> becomes one
      : items{std::ranges::data(from), std::ranges::data(from) + std::ranges::size(from)} {}
  items(const items& other) : items{other.begin(), other.end()} {}
  items(items&& other) noexcept : all_{std::move(other.all_)}, count_{std::exchange(other.count_, 0)} {}
  items& operator=(items&& other) noexcept {
    all_ = std::move(other.all_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }
  // Two functions: with one by value, that of a class with such a member would be noexcept, but a copy allocates.
  items& operator=(const items& other) { return *this = items{other}; }

  const T* begin() const noexcept { return all_.get(); }
  const T* end() const noexcept { return all_.get() + count_; }
  const T* data() const noexcept { return all_.get(); }
  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  const T& operator[](std::size_t index) const noexcept { return all_[index]; }
  T& operator[](std::size_t index) noexcept { return all_[index]; }
  const T& front() const noexcept { return all_[0]; }
  const T& back() const noexcept { return all_[count_ - 1]; }

  /// Keeps only the first `count` values. Does not free memory.
  void cut(std::size_t count) noexcept { count_ = count; }

  /// A copy in a standard container.
  template <class Container>
    requires std::is_same_v<typename Container::value_type, T> &&
             std::is_constructible_v<Container, const T*, const T*> && (!std::ranges::enable_view<Container>)
  operator Container() const {  // NOLINT: a std::vector<T> of it
    return Container(begin(), end());
  }

 private:
  std::unique_ptr<T[]> all_;
  std::size_t count_ = 0;
};

}  // namespace weft
