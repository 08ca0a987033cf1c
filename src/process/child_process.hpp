// A process that was started, and how it is asked and told.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <weft/process.hpp>

namespace weft::detail {

// A process that was started, and has not been given up. All that concerns its number is done under the lock: once it is
// reaped, the number may be another process's.
class child_process {
 public:
  explicit child_process(bool has_group) noexcept : has_group_{has_group} {}
  child_process(const child_process&) = delete;
  ~child_process() {
    // Of another user's process, which takes no signal, it does not wait for the end.
    if (is_still_there() && send(SIGKILL) == 0) {
      siginfo_t how{};
      while (::waitid(P_PID, static_cast<id_t>(number_), &how, WEXITED) != 0 && errno == EINTR) {
      }
    }
    if (at_ != nullptr) at_->drop();
  }

  // Before anybody knows of it.
  void has_begun(pid_t number) noexcept {
    number_ = number;
    is_there_ = true;
  }
  void is_watched_by(descriptor& at) noexcept { at_ = &at; }

  pid_t number() const noexcept { return number_; }
  descriptor* at() const noexcept { return at_; }

  /// Whether it is known how it has ended, or that this will not be known.
  bool has_ended() noexcept {
    const std::lock_guard guard{lock_};
    return !is_there_;
  }
  exit_status status() noexcept {
    const std::lock_guard guard{lock_};
    return status_;
  }

  /// An error number; EAGAIN: it goes on.
  int look() noexcept {
    const std::lock_guard guard{lock_};
    if (!is_there_) return is_lost_ ? ECHILD : 0;
    siginfo_t how{};
    if (ends_group_) {  // while its number still keeps the group's from being another's
      if (const int refused = ask(how, WNOWAIT); refused != 0) return refused;
      ::kill(-number_, SIGKILL);
    }
    how = {};
    if (const int refused = ask(how, 0); refused != 0) return refused;
    is_there_ = false;
    status_ = how.si_code == CLD_EXITED ? exit_status::of_code(how.si_status)
                                        : exit_status::of_signal(how.si_status, how.si_code == CLD_DUMPED);
    return 0;
  }

  /// An error number. Nothing where it has ended.
  int signal(int number) noexcept {
    const std::lock_guard guard{lock_};
    return is_still_there() ? send(number) : 0;
  }

  /// What is left of its group when it has ended is killed then.
  void end_group_too() noexcept {
    const std::lock_guard guard{lock_};
    ends_group_ = has_group_;
  }

  pid_t give_up() noexcept {
    const std::lock_guard guard{lock_};
    is_there_ = false;
    return number_;
  }

 private:
  // All that follows under the lock.

  // By its pidfd, so that it is no other process of that number; before that is there, nobody else could have reaped it.
  int ask(siginfo_t& how, int options) noexcept {
    const bool has_file = at_ != nullptr;
    const auto id = static_cast<id_t>(has_file ? at_->number() : number_);
    while (::waitid(has_file ? P_PIDFD : P_PID, id, &how, WEXITED | WNOHANG | options) != 0) {
      if (errno == EINTR) continue;
      is_lost_ = true;  // somebody else has reaped it, or this is a forked copy
      is_there_ = false;
      return errno;
    }
    return how.si_pid == 0 ? EAGAIN : 0;
  }
  bool is_still_there() noexcept {
    if (!is_there_) return false;
    siginfo_t how{};
    ask(how, WNOWAIT);
    return is_there_;
  }
  // An error number. Its group, too; it may have left that.
  int send(int number) noexcept {
    const bool of_group = has_group_ && ::kill(-number_, number) == 0;
    const bool of_itself = (at_ != nullptr ? ::syscall(SYS_pidfd_send_signal, at_->number(), number, nullptr, 0)
                                           : ::kill(number_, number)) == 0;
    return of_itself || (of_group && errno != EPERM) ? 0 : errno;
  }

  std::mutex lock_;
  pid_t number_ = -1;
  const bool has_group_;
  bool is_there_ = false;
  bool is_lost_ = false;  // somebody else has reaped it
  bool ends_group_ = false;
  exit_status status_;
  descriptor* at_ = nullptr;
};

}  // namespace weft::detail
