// What the kernel's files in /proc say of a process, and its memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "memory.hpp"
#include "target.hpp"

namespace weft_tool {

/// "/proc/17/maps".
std::string file_of(int pid, const char* name);

/// Throws a problem that says why that can't be done to the process.
[[noreturn]] void refuse(int pid, int error, const char* doing);

/// Throw problem: the process that looks, and one whose memory may not be read.
void refuse_this(int pid);
void refuse_unless_readable(int pid, const memory& of, const std::vector<mapping>& mappings);

/// Throw problem.
std::vector<mapping> mappings_of(int pid);
std::vector<int> threads_of(int pid);

/// What one of those files says behind `key`; empty: it is gone.
std::string status_of(const std::string& file, std::string_view key);
/// The state of a thread, as a letter; 0: it is gone.
char state_of(int pid, int thread);
/// Whether a thread has ended. The first one is listed on until all have, and has no memory any more.
bool has_ended(int pid, int thread);
/// A thread's number as the process itself knows it, which is another one where that is in a container.
int number_inside(int pid, int thread);
/// By whose number the kernel gives the memory of a process: its first thread may have ended.
int living_thread_of(int pid);

/// As it is now.
class live_memory final : public memory {
 public:
  explicit live_memory(int pid) noexcept : pid_{pid} {}
  std::size_t read(address at, void* into, std::size_t bytes) const noexcept override;
  int pid() const noexcept { return pid_; }

 private:
  int pid_;
};

}  // namespace weft_tool
