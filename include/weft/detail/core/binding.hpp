// What with_local binds: each in the frame of the with_local that made it. A binding knows the innermost one of each of a few
// slots, by the address of the `local`, and one of a slot the next one further out that is of another local. So a look-up
// takes as many steps as there are locals in its slot, however deep with_local nests.
//
// Rejected: a table of locals in each env: it would be copied by each scope.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weft::detail {

/// One value of one local, and those further out, which outlive it.
class binding {
 public:
  binding(const void* key, const void* value, const binding* outer) noexcept : key_{key}, value_{value} {
    if (outer != nullptr) std::copy_n(outer->nearest_, slots, nearest_);
    const binding*& nearest = nearest_[slot_of(key)];
    further_ = nearest != nullptr && nearest->key_ == key ? nearest->further_ : nearest;
    nearest = this;
  }
  binding(const binding&) = delete;

  /// The innermost value of `key`; null if there is none.
  const void* find(const void* key) const noexcept {
    for (const binding* one = nearest_[slot_of(key)]; one != nullptr; one = one->further_)
      if (one->key_ == key) return one->value_;
    return nullptr;
  }

 private:
  static constexpr std::size_t slots = 8;
  static std::size_t slot_of(const void* key) noexcept {
    return reinterpret_cast<std::uintptr_t>(key) * 0x9e3779b97f4a7c15U >> 61;
  }

  const void* key_;
  const void* value_;
  const binding* further_;  // in this one's slot, of another local
  const binding* nearest_[slots]{};
};

/// The value that is bound to `key` here; null if none is.
const void* find_binding(const void* key) noexcept;

}  // namespace weft::detail
