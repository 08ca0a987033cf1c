// What is told of forks: a child has none of the threads of its parent, and closes what it inherited.
#pragma once

namespace weft::detail {

class fork_guarded {
 public:
  /// In the parent, around a fork: between these two, nothing is opened or closed.
  virtual void hold() noexcept = 0;
  virtual void let_go() noexcept = 0;
  /// In the child, in place of let_go(). It is told of no more forks.
  virtual void close_in_child() noexcept = 0;

 protected:
  fork_guarded() = default;
  ~fork_guarded() = default;
};

/// From now on, or no longer. Throws std::bad_alloc.
void tell_of_forks(fork_guarded& one);
void tell_no_more(fork_guarded& one) noexcept;

}  // namespace weft::detail
