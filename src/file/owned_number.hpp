// The number of an open file that nobody has taken over yet.
#pragma once

#include <unistd.h>

#include <utility>

namespace weft::detail {

/// Owns a number, and closes it unless it is taken over.
class owned_number {
 public:
  explicit owned_number(int number) noexcept : number_{number} {}
  owned_number(owned_number&& other) noexcept : number_{other.give()} {}
  ~owned_number() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const noexcept { return number_; }
  int give() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace weft::detail
