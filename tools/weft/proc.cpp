#include "proc.hpp"

#include <dirent.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

namespace weft_tool {

std::string file_of(int pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

[[noreturn]] void refuse(int pid, int error, const char* doing) {
  const std::string who = "process " + std::to_string(pid);
  if (error == ESRCH || error == ENOENT) throw problem{"there is no " + who};
  if (error == EPERM || error == EACCES)
    throw problem{who + ": not permitted to " + doing +
                  ": be its user or root, and see /proc/sys/kernel/yama/ptrace_scope; another debugger may be at it"};
  throw problem{who + ": cannot " + doing + ": " + std::generic_category().message(error)};
}

void refuse_this(int pid) {
  if (pid == ::getpid()) throw problem{"this is the process that looks"};
}

void refuse_unless_readable(int pid, const memory& of, const std::vector<mapping>& mappings) {
  std::uint64_t probe;
  const auto first = std::ranges::find_if(mappings, &mapping::can_read);
  errno = 0;
  if (first == mappings.end() || of.read(first->begin, &probe, sizeof probe) != sizeof probe)
    refuse(pid, errno != 0 ? errno : EPERM, "read its memory");
}

std::vector<mapping> mappings_of(int pid) {
  std::vector<mapping> all;
  std::ifstream in{file_of(pid, "maps")};
  if (!in) refuse(pid, errno, "read its mappings");
  for (std::string line; std::getline(in, line);) {
    mapping one;
    char rights[5]{};
    int path = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &one.begin, &one.end, rights,
                    &one.offset, &path) < 4)
      continue;
    one.can_read = rights[0] == 'r';
    one.can_write = rights[1] == 'w';
    one.can_run = rights[2] == 'x';
    one.is_private = rights[3] == 'p';
    if (path != 0) one.path = line.substr(static_cast<std::size_t>(path));
    all.push_back(std::move(one));
  }
  if (all.empty()) refuse(pid, ESRCH, "read its mappings");
  return all;
}

std::vector<int> threads_of(int pid) {
  std::vector<int> all;
  DIR* const tasks = ::opendir(file_of(pid, "task").c_str());
  if (tasks == nullptr) refuse(pid, errno, "list its threads");
  while (const dirent* const one = ::readdir(tasks))
    if (one->d_name[0] != '.') all.push_back(std::atoi(one->d_name));
  ::closedir(tasks);
  return all;
}

std::string status_of(const std::string& file, std::string_view key) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return line.substr(std::min(line.size(), line.find_first_not_of(" \t", key.size())));
  return {};
}

char state_of(int pid, int thread) {
  const std::string state = status_of(file_of(pid, ("task/" + std::to_string(thread) + "/status").c_str()), "State:");
  return state.empty() ? '\0' : state[0];
}

bool has_ended(int pid, int thread) {
  const char state = state_of(pid, thread);
  return state == '\0' || state == 'Z' || state == 'X';
}

int number_inside(int pid, int thread) {
  const std::string all = status_of(file_of(pid, ("task/" + std::to_string(thread) + "/status").c_str()), "NSpid:");
  const std::size_t last = all.find_last_of(" \t");
  const int number = std::atoi(all.c_str() + (last == all.npos ? 0 : last + 1));
  return number != 0 ? number : thread;
}

int living_thread_of(int pid) {
  for (const int one : threads_of(pid))
    if (!has_ended(pid, one)) return one;
  return pid;
}

std::size_t live_memory::read(address at, void* into, std::size_t bytes) const noexcept {
  std::size_t done = 0;
  while (done != bytes) {
    iovec here{static_cast<std::byte*>(into) + done, bytes - done};
    iovec there{reinterpret_cast<void*>(at + done), bytes - done};
    const ssize_t got = ::process_vm_readv(pid_, &here, 1, &there, 1, 0);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace weft_tool
