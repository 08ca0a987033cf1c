// Where a reader outside of the process finds what a wait is for: a debugger, or a program that reads the memory of another
// process or a core file. Such a reader calls no function, so what the functions of a wait_type tell stands here once
// more, as data. Each awaiter computes it from its own members, so it changes with them.
//
// Rejected: one table of all kinds of waits in a source file: awaiters of channels and receivers are templates, and a type
// of a program's own would not be in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/base/narrow.hpp>

namespace weft::detail {

/// All in bytes. A waiter is the `waiter` that its sleeper has parked in.
struct wait_layout {
  static constexpr std::uint16_t nowhere = 0xffff;
  static constexpr std::uint64_t somebody = 2;  // a word with no more than this names nobody

  enum class place {
    nothing,  ///< the wait is for nothing that has an address
    stored,   ///< the subject's address is stored in the waiter
    itself,   ///< the subject is what the waiter is a part of
    cases,    ///< there are several: the waiter is that of a select
  };
  enum class holder {
    unknown,
    subject,  ///< the subject is a root, which will bring it about
    word,     ///< a word in the subject has the root's address, and marks in its low bits
  };

  narrow<place> subject = place::nothing;
  narrow<holder> held_by = holder::unknown;
  std::uint16_t subject_at = 0;       // in the waiter: the stored address; of a select, that of its select_places
  std::uint16_t subject_plus = 0;     // to be added to the stored address
  std::uint16_t word_at = nowhere;    // in the subject; of a select, in the waiter: how many those are
  std::uint16_t marks = 0;            // bits of that word that are no part of the address
  std::uint16_t word2_at = nowhere;   // read where the first word names nobody
  std::uint16_t unless_at = nowhere;  // in the waiter: a byte; the second word is not read where it has this value
  std::uint16_t unless_is = 0;

  /// Roots that are linked in a list, for which the wait is: the children of a scope, say.
  struct list {
    std::uint16_t first_at = nowhere;  // in the subject: the address of the first record
    std::uint16_t next_at = 0;         // in a record: that of the next
    std::uint16_t root_at = 0;         // in a record: its root
  };
  list children[2]{};
  std::uint16_t body_at = nowhere;       // in the subject: a root that is a child, too
  std::uint16_t body_over_at = nowhere;  // in the subject: a byte; not 0: that root has ended
  std::uint16_t parent_at = nowhere;  // in the subject: the address of the root that waits for those children, or will

  std::uint16_t decides_at =
      nowhere;  // in the subject: null, or the address of how one child may have the others stopped

  static consteval std::uint16_t distance(std::size_t bytes) {
    if (bytes >= nowhere) throw "too far";  // does not compile
    return static_cast<std::uint16_t>(bytes);
  }

  /// The subject's address, less `plus`, is stored there.
  static consteval wait_layout stored_at(std::size_t at, std::size_t plus = 0) {
    wait_layout made;
    made.subject = place::stored;
    made.subject_at = distance(at);
    made.subject_plus = distance(plus);
    return made;
  }
  /// The waiter itself is what the wait is for.
  static consteval wait_layout part_of_subject() {
    wait_layout made;
    made.subject = place::itself;
    return made;
  }
  /// The address of the places of a select is stored there, and how many they are.
  static consteval wait_layout of_cases_at(std::size_t at, std::size_t count) {
    wait_layout made;
    made.subject = place::cases;
    made.subject_at = distance(at);
    made.word_at = distance(count);
    return made;
  }
  consteval wait_layout held_by_subject() const {
    wait_layout made{*this};
    made.held_by = holder::subject;
    return made;
  }
  consteval wait_layout held_by_word(std::size_t at, std::size_t with_marks = 0) const {
    wait_layout made{*this};
    made.held_by = holder::word;
    made.word_at = distance(at);
    made.marks = distance(with_marks);
    return made;
  }
  consteval wait_layout or_by_word(std::size_t at, std::size_t unless, std::size_t is) const {
    wait_layout made{*this};
    made.word2_at = distance(at);
    made.unless_at = distance(unless);
    made.unless_is = distance(is);
    return made;
  }
  consteval wait_layout with_children(std::size_t first, std::size_t next, std::size_t root) const {
    wait_layout made{*this};
    made.children[made.children[0].first_at == nowhere ? 0 : 1] = {distance(first), distance(next), distance(root)};
    return made;
  }
  consteval wait_layout with_parent(std::size_t at) const {
    wait_layout made{*this};
    made.parent_at = distance(at);
    return made;
  }
  consteval wait_layout that_decides_by(std::size_t at) const {
    wait_layout made{*this};
    made.decides_at = distance(at);
    return made;
  }
  consteval wait_layout with_body(std::size_t at, std::size_t over) const {
    wait_layout made{*this};
    made.body_at = distance(at);
    made.body_over_at = distance(over);
    return made;
  }
};

}  // namespace weft::detail

// An awaiter declares `static const wait_layout seen;`, and behind the class, where that is complete, this says what it is.
// offsetof() of a class with bases is conditionally supported, by both compilers, and they warn of it.
#define WEFT_LAYOUT(awaiter, ...)                                                                                   \
  _Pragma("GCC diagnostic push") _Pragma(                                                                           \
      "GCC diagnostic ignored \"-Winvalid-offsetof\"") inline constexpr ::weft::detail::wait_layout awaiter::seen = \
      ::weft::detail::wait_layout::__VA_ARGS__;                                                                     \
  _Pragma("GCC diagnostic pop") static_assert(true)
// The same in the source file of the awaiter, which is no template.
#define WEFT_LAYOUT_HERE(awaiter, ...)                                                                             \
  _Pragma("GCC diagnostic push") _Pragma(                                                                          \
      "GCC diagnostic ignored \"-Winvalid-offsetof\"") constinit const ::weft::detail::wait_layout awaiter::seen = \
      ::weft::detail::wait_layout::__VA_ARGS__;                                                                    \
  _Pragma("GCC diagnostic pop") static_assert(true)
// The same of a member of a template, whose parameter is `parameter`.
#define WEFT_LAYOUT_IN(parameter, awaiter, ...)                                                                      \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"") template <class parameter> \
  inline constexpr ::weft::detail::wait_layout awaiter::seen = ::weft::detail::wait_layout::__VA_ARGS__;             \
  _Pragma("GCC diagnostic pop") static_assert(true)
// How far a member of the awaiter lies behind its waiter, and the root of a record in that.
#define WEFT_BEHIND_WAITER(awaiter, member) \
  (offsetof(awaiter, member) - offsetof(awaiter, linked) + offsetof(::weft::detail::waiter, linked))
#define WEFT_ROOT_IN(record) (offsetof(record, top) - offsetof(::weft::detail::root, top))
