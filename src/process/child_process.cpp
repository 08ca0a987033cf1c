#include "process/child_process.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <weft/unix.hpp>

namespace weft::detail {

bool child_process::kill_and_reap() noexcept {
  const std::lock_guard guard{lock_};
  if (is_still_there()) {
    if (send(SIGKILL) != 0) {
      if (!reap()) return false;
    } else {
      while (::waitid(P_PID, static_cast<id_t>(number_), nullptr, WEXITED) != 0 && errno == EINTR) {
      }
    }
    is_there_ = false;
  }
  if (tells_group_) signal_left_group(SIGKILL);
  return true;
}

// ---- processes that could not be killed -----------------------------------------------------------------------------------

namespace {

std::mutex left_lock;
child_process* left = nullptr;

}  // namespace

void delete_child_process::operator()(child_process* one) const noexcept {
  if (one->kill_and_reap()) {
    delete one;
    return;
  }
  one->is_left();
  const std::lock_guard guard{left_lock};
  one->next = std::exchange(left, one);
}

void reap_left_children() noexcept {
  const std::lock_guard guard{left_lock};
  for (child_process** at = &left; *at != nullptr;) {
    child_process* const one = *at;
    if (one->reap()) {
      *at = one->next;
      delete one;
    } else {
      at = &one->next;
    }
  }
}

// ---- groups ---------------------------------------------------------------------------------------------------------------

namespace {

// The state and the group that a line of /proc/<id>/stat gives, behind the name, which may have any character.
bool runs_in(const char* line, pid_t group) noexcept {
  const char* const behind = std::strrchr(line, ')');
  char state = 0;
  int parent = 0, its = 0;
  if (behind == nullptr || std::sscanf(behind + 1, " %c %d %d", &state, &parent, &its) != 3) return false;
  return its == group && state != 'Z' && state != 'X';
}

}  // namespace

bool any_runs_in_group(pid_t group) noexcept {
  const std::unique_ptr<DIR, int (*)(DIR*)> all{::opendir("/proc"), ::closedir};
  if (all == nullptr) return true;
  while (const dirent* const one = ::readdir(all.get())) {
    if (one->d_name[0] < '1' || one->d_name[0] > '9') continue;
    char path[64];
    std::snprintf(path, sizeof path, "%.20s/stat", one->d_name);
    const net::owned_descriptor file{::openat(::dirfd(all.get()), path, O_RDONLY | O_CLOEXEC)};
    char line[512];
    const ssize_t size = file.number() < 0 ? -1 : ::read(file.number(), line, sizeof line - 1);
    if (size <= 0) continue;  // it has ended
    line[size] = '\0';
    if (runs_in(line, group)) return true;
  }
  return false;
}

}  // namespace weft::detail
