// A started process: asks the system whether it has ended, and sends it signals.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>
#include <weft/process.hpp>

namespace weft::detail {

// A process that was started and not released. All that uses its id is done under the lock, since the system may give the id to
// another process once this one was reaped.
class child_process {
 public:
  explicit child_process(bool has_group) noexcept : has_group_{has_group} {}
  child_process(const child_process&) = delete;
  ~child_process() {
    if (at_ != nullptr) at_->drop();
  }

  /// Kills the process, and what an end() has left of its group, and waits for its end. False: the process belongs to another
  /// user, so that it can't be killed, and has not ended yet.
  bool kill_and_reap() noexcept;
  /// Reaps the process if it has ended, by its id. False: it runs.
  bool reap() noexcept {
    siginfo_t how{};
    return ::waitid(P_PID, static_cast<id_t>(number_), &how, WEXITED | WNOHANG) != 0 || how.si_pid != 0;
  }
  child_process* next = nullptr;  // in the list of those that are left to run
  void is_left() noexcept { std::exchange(at_, nullptr)->drop(); }

  // Before other threads know of this object.
  void has_begun(pid_t number) noexcept {
    number_ = number;
    is_there_ = true;
  }
  void is_watched_by(descriptor& at) noexcept { at_ = &at; }

  pid_t number() const noexcept { return number_; }
  descriptor* at() const noexcept { return at_; }

  /// Whether its end was seen: the exit status is known, or is known to be lost.
  bool has_ended() noexcept {
    const std::lock_guard guard{lock_};
    return !is_there_;
  }
  exit_status status() noexcept {
    const std::lock_guard guard{lock_};
    return status_;
  }

  /// Reaps the process if it has ended. Gives 0, or an error number: EAGAIN if the process still runs, ECHILD if its status is
  /// lost, another one if the system refuses to tell.
  int try_reap() noexcept {
    const std::lock_guard guard{lock_};
    if (!is_there_) return is_lost_ ? ECHILD : 0;
    siginfo_t how{};
    // Before the reaping: a zombie keeps its id, so that of the group names no other one.
    if (ends_group_ && !tells_group_) {
      if (const int refused = wait_without_blocking(how, WNOWAIT); refused != 0) return refused;
      ::kill(-number_, SIGKILL);
    }
    how = {};
    if (const int refused = wait_without_blocking(how, 0); refused != 0) return refused;
    is_there_ = false;
    status_ = how.si_code == CLD_EXITED ? exit_status::of_code(how.si_status)
                                        : exit_status::of_signal(how.si_status, how.si_code == CLD_DUMPED);
    return 0;
  }

  /// Sends a signal, and gives 0 or an error number. Does nothing once the process was reaped.
  int signal(int number) noexcept {
    const std::lock_guard guard{lock_};
    return is_still_there() ? send(number) : 0;
  }

  /// If the process was not reaped yet: from now on what is left of its group ends, too.
  void end_group_too() noexcept {
    const std::lock_guard guard{lock_};
    ends_group_ = has_group_ && is_still_there();
    tells_group_ = ends_group_ && signal_left_group(0);
  }
  /// Whether there are others in the group that ends, after the process was reaped. Always false before Linux 6.9, where the id of
  /// a process that was reaped may name another group: there the others are killed before that.
  bool has_left_group() noexcept {
    const std::lock_guard guard{lock_};
    return tells_group_ && signal_left_group(0);
  }
  void kill_left_group() noexcept {
    const std::lock_guard guard{lock_};
    if (tells_group_) signal_left_group(SIGKILL);
  }

  /// Gives the id to the caller, who must reap the process; or -1, if it was reaped.
  pid_t release() noexcept {
    const std::lock_guard guard{lock_};
    ends_group_ = tells_group_ = false;
    return std::exchange(is_there_, false) ? number_ : -1;
  }

 private:
  // Everything below is called or accessed under the lock.

  // Calls waitid(), and gives 0, EAGAIN if the process still runs, or an error number. By the pidfd, which can't name another
  // process. Before there is a pidfd it uses the id.
  int wait_without_blocking(siginfo_t& how, int options) noexcept {
    const bool has_file = at_ != nullptr;
    const auto id = static_cast<id_t>(has_file ? at_->number() : number_);
    while (::waitid(has_file ? P_PIDFD : P_PID, id, &how, WEXITED | WNOHANG | options) != 0) {
      if (errno == EINTR) continue;
      if (errno == ECHILD) {  // other code has reaped it, or this process is a fork of the one that started it
        is_lost_ = true;
        is_there_ = false;
      }
      return errno;  // else the system refuses to tell, as a filter of system calls may: the process is still this one's
    }
    return how.si_pid == 0 ? EAGAIN : 0;
  }
  bool is_still_there() noexcept {
    if (!is_there_) return false;
    siginfo_t how{};
    wait_without_blocking(how, WNOWAIT);
    return is_there_;
  }
  // Signals its group by the pidfd, which names it as long as anybody is in it. False: nobody is, or the system is older.
  bool signal_left_group(int number) noexcept {
    constexpr unsigned to_group = 4;  // PIDFD_SIGNAL_PROCESS_GROUP
    return at_ != nullptr && ::syscall(SYS_pidfd_send_signal, at_->number(), number, nullptr, to_group) == 0;
  }
  // Signals its group, and the process itself unless it has had the signal with its group, which it may have left. Gives 0 or
  // an error number.
  int send(int number) noexcept {
    const bool of_group = has_group_ && ::kill(-number_, number) == 0;
    const bool had_it = of_group && ::getpgid(number_) == number_;
    const int rest = had_it ? 0 : number;  // 0: only whether it could be signalled
    const bool of_itself = (at_ != nullptr ? ::syscall(SYS_pidfd_send_signal, at_->number(), rest, nullptr, 0)
                                           : ::kill(number_, rest)) == 0;
    return of_itself || (of_group && errno != EPERM) ? 0 : errno;
  }

  std::mutex lock_;
  pid_t number_ = -1;
  const bool has_group_;
  bool is_there_ = false;
  bool is_lost_ = false;  // its exit status can't be had any more
  bool ends_group_ = false;
  bool tells_group_ = false;  // `ends_group_`, and the system tells whether anybody is left in the group
  exit_status status_;
  descriptor* at_ = nullptr;
};

/// Whether a process runs in this group, by /proc. True where that does not tell.
bool any_runs_in_group(pid_t group) noexcept;

/// Reaps those processes that have ended since they were left to run, because they could not be killed.
void reap_left_children() noexcept;

}  // namespace weft::detail
