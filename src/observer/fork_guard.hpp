// Objects that are called around a fork(): a child does not have its parent's threads, and closes the descriptors it inherited.
#pragma once

namespace weft::detail {

class fork_guarded {
 public:
  /// Called in the parent before and after a fork(): between the two, nothing may be opened or closed.
  virtual void hold() noexcept = 0;
  virtual void let_go() noexcept = 0;
  /// Called in the child, in place of let_go(). The child's own forks call nothing.
  virtual void close_in_child() noexcept = 0;

 protected:
  fork_guarded() = default;
  ~fork_guarded() = default;
};

/// Begins and ends the calls. The first throws std::bad_alloc.
void tell_of_forks(fork_guarded& one);
void tell_no_more(fork_guarded& one) noexcept;

}  // namespace weft::detail
