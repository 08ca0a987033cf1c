// Where a reader outside of the process finds what a case of a select is for, as data: what its `tell` computes. As a
// wait_layout, which says the same of a wait; see core/wait_layout.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/core/wait_layout.hpp>

namespace weft::detail {

/// All in bytes, from where the select_case lies, which is the first base of its state.
struct case_layout {
  static constexpr std::uint16_t nowhere = wait_layout::nowhere;

  const char* name = nullptr;          // null: another one says it
  std::uint16_t subject_at = nowhere;  // the address of what it is for
  std::uint16_t subject_plus = 0;      // to be added to that
  std::uint16_t through_at = nowhere;  // in what lies there: the address of what it is for
  std::uint16_t marks = 0;             // bits of it that are no part of the address
  std::uint16_t is_held_by_it = 0;     // 1: the subject is a root, which will bring it about
  std::uint16_t waiter_at = nowhere;   // a waiter in it, and the address of a wait_type, which says what that is for
  std::uint16_t type_at = nowhere;
  std::uint16_t inner_at = nowhere;    // another case, whose layout is `inner`
  std::uint16_t pointer_at = nowhere;  // the address of another case, in which that of its layout is there
  std::uint16_t layout_at = nowhere;
  const case_layout* inner = nullptr;
  std::uint16_t there_at = nowhere;  // a byte; where it is 0, the case is not there, and nothing is told
  std::uint16_t is_none = 0;         // 1: nothing is told of it

  static consteval case_layout of(const char* what, std::size_t subject, std::size_t with_marks = 0,
                                  std::size_t plus = 0) {
    case_layout made;
    made.name = what;
    made.subject_at = wait_layout::distance(subject);
    made.marks = wait_layout::distance(with_marks);
    made.subject_plus = wait_layout::distance(plus);
    return made;
  }
  static consteval case_layout of_nothing(const char* what) {
    case_layout made;
    made.name = what;
    return made;
  }
  static consteval case_layout of_none() {
    case_layout made;
    made.is_none = 1;
    return made;
  }
  static consteval case_layout of_waiter(std::size_t at, std::size_t type) {
    case_layout made;
    made.waiter_at = wait_layout::distance(at);
    made.type_at = wait_layout::distance(type);
    return made;
  }
  static consteval case_layout of_inner(std::size_t at, const case_layout* its) {
    case_layout made;
    made.inner_at = wait_layout::distance(at);
    made.inner = its;
    return made;
  }
  static consteval case_layout of_pointer(std::size_t at, std::size_t layout) {
    case_layout made;
    made.pointer_at = wait_layout::distance(at);
    made.layout_at = wait_layout::distance(layout);
    return made;
  }
  consteval case_layout through(std::size_t at) const {
    case_layout made{*this};
    made.through_at = wait_layout::distance(at);
    return made;
  }
  consteval case_layout if_there(std::size_t at) const {
    case_layout made{*this};
    made.there_at = wait_layout::distance(at);
    return made;
  }
  consteval case_layout held_by_it() const {
    case_layout made{*this};
    made.is_held_by_it = 1;
    return made;
  }
};

}  // namespace weft::detail

// A state declares `static const case_layout seen;`, and behind the class, where that is complete, this says what it is: of a
// template, whose parameters are given in brackets.
#define WEFT_CASE_LAYOUT(state, ...)                                                                              \
  _Pragma("GCC diagnostic push") _Pragma(                                                                         \
      "GCC diagnostic ignored \"-Winvalid-offsetof\"") inline constexpr ::weft::detail::case_layout state::seen = \
      ::weft::detail::case_layout::__VA_ARGS__;                                                                   \
  _Pragma("GCC diagnostic pop") static_assert(true)
#define WEFT_CASE_LAYOUT_IN(parameter, state, ...)                                                                   \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"") template <class parameter> \
  inline constexpr ::weft::detail::case_layout state::seen = ::weft::detail::case_layout::__VA_ARGS__;               \
  _Pragma("GCC diagnostic pop") static_assert(true)
