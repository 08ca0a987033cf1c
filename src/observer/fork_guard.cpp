#include "observer/fork_guard.hpp"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "observer/dump_signal.hpp"

namespace weft::detail {
namespace {

constinit std::mutex guards_lock;
std::vector<fork_guarded*>& all_guards() {
  static auto* const those = new std::vector<fork_guarded*>;  // never freed: an observer may outlive statics
  return *those;
}

void hold_all() noexcept {
  guards_lock.lock();
  hold_dump_signal();
  for (fork_guarded* one : all_guards()) one->hold();
}

void let_all_go() noexcept {
  for (fork_guarded* one : all_guards()) one->let_go();
  let_go_dump_signal();
  guards_lock.unlock();
}

void leave_to_parent() noexcept {
  for (fork_guarded* one : all_guards()) one->close_in_child();
  all_guards().clear();
  forget_dump_signal();
  guards_lock.unlock();
}

}  // namespace

void tell_of_forks(fork_guarded& one) {
  [[maybe_unused]] static const int registered = ::pthread_atfork(hold_all, let_all_go, leave_to_parent);
  const std::lock_guard held{guards_lock};
  all_guards().push_back(&one);
}

void tell_no_more(fork_guarded& one) noexcept {
  const std::lock_guard held{guards_lock};
  std::erase(all_guards(), &one);
}

}  // namespace weft::detail
