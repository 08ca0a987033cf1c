// The name of a task, fiber or fork for whoever looks from outside. What is looked up by it is in observe.hpp.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>

namespace weft {

namespace detail {
class root;
struct task_ids;
}  // namespace detail

/// Names one task, fiber or fork of this process, also when that has ended: another one is never given the same id, though it
/// may lie at the same address. An id that was never assigned names nothing.
class task_id {
 public:
  task_id() = default;

  explicit operator bool() const noexcept { return address_ != 0; }

  /// Where its root lies, or lay.
  std::uintptr_t address() const noexcept { return address_; }
  /// Tells apart those that have lain there.
  std::uint64_t generation() const noexcept { return generation_; }

  friend auto operator<=>(const task_id&, const task_id&) = default;

 private:
  friend detail::task_ids;
  task_id(std::uintptr_t address, std::uint64_t generation) noexcept : address_{address}, generation_{generation} {}

  std::uintptr_t address_ = 0;
  std::uint64_t generation_ = 0;
};

/// "0x55d0f8.17".
std::ostream& operator<<(std::ostream& out, task_id id);

namespace this_task {

/// Gives the id of the task, fiber or fork that runs on this thread; one that names nothing outside of all.
///
/// Fails  throws std::bad_alloc at the first call in a task.
/// Cost   a look into a table, under a lock. A task whose id nobody asks for pays nothing.
task_id id();

}  // namespace this_task

namespace detail {

/// The id of a root, which whoever calls keeps alive. Throws std::bad_alloc.
task_id id_of(root& one);

}  // namespace detail
}  // namespace weft

template <>
struct std::hash<weft::task_id> {
  std::size_t operator()(const weft::task_id& id) const noexcept {
    return static_cast<std::size_t>((id.address() >> 4) ^ (id.generation() * 0x9e3779b97f4a7c15));
  }
};
