// Ids of tasks, fibers and forks, for observers. observe.hpp has the functions that take one.
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

/// Identifies one task, fiber or fork of this process, also after it has ended: no other one ever gets the same id, even at the
/// same address. A default id identifies none.
class task_id {
 public:
  task_id() = default;

  explicit operator bool() const noexcept { return address_ != 0; }

  /// The address of its root, which may have ended.
  std::uintptr_t address() const noexcept { return address_; }
  /// Distinguishes the roots that have had this address.
  std::uint64_t generation() const noexcept { return generation_; }

  friend auto operator<=>(const task_id&, const task_id&) = default;

 private:
  friend detail::task_ids;
  task_id(std::uintptr_t address, std::uint64_t generation) noexcept : address_{address}, generation_{generation} {}

  std::uintptr_t address_ = 0;
  std::uint64_t generation_ = 0;
};

/// Writes "0x55d0f8.17".
std::ostream& operator<<(std::ostream& out, task_id id);

namespace this_task {

/// Gives the id of the task, fiber or fork that runs on this thread; outside of any, a default id.
///
/// Fails  throws std::bad_alloc at the first call in a task.
/// Cost   a look-up in a table, under a lock. A task whose id nobody asks for costs nothing.
task_id id();

}  // namespace this_task

namespace detail {

/// The id of a root, which the caller keeps alive. Throws std::bad_alloc.
task_id id_of(root& one);

}  // namespace detail
}  // namespace weft

template <>
struct std::hash<weft::task_id> {
  std::size_t operator()(const weft::task_id& id) const noexcept {
    return static_cast<std::size_t>((id.address() >> 4) ^ (id.generation() * 0x9e3779b97f4a7c15));
  }
};
