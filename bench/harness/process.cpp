#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>  // sigabbrev_np
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace bench {
namespace {

class descriptor {
 public:
  explicit descriptor(int fd) noexcept : fd_{fd} {}
  descriptor(descriptor&& other) noexcept : fd_{other.fd_} { other.fd_ = -1; }
  descriptor& operator=(descriptor&&) = delete;
  ~descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  void close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

struct pipe_ends {
  descriptor read, write;
};

[[noreturn]] void fail(const std::string& what) { throw std::system_error{errno, std::generic_category(), what}; }

pipe_ends make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  return {descriptor{ends[0]}, descriptor{ends[1]}};
}

/// In the child: becomes the program, or tells the parent why not through `trouble`. Calls only what is allowed
/// between fork and exec.
[[noreturn]] void become(const std::vector<char*>& arguments, const process_options& options, int out, int err,
                         int trouble) noexcept {
  ::setpgid(0, 0);  // a group of its own: a time-out ends whatever it started, too
  if (options.cpu) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<std::size_t>(*options.cpu), &cores);
    ::sched_setaffinity(0, sizeof cores, &cores);
  }
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  const int why = errno;
  (void)!::write(trouble, &why, sizeof why);
  ::_exit(127);
}

/// Reads both pipes until their ends, or until the time is over (false).
bool collect(pipe_ends& out, pipe_ends& err, process_result& result, std::chrono::steady_clock::time_point deadline) {
  std::array<pollfd, 2> sources{pollfd{out.read.get(), POLLIN, 0}, pollfd{err.read.get(), POLLIN, 0}};
  const std::array<std::string*, 2> texts{&result.out, &result.err};
  while (sources[0].fd >= 0 || sources[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (::poll(sources.data(), sources.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) fail("poll");
    for (std::size_t i = 0; i != sources.size(); ++i) {
      if (sources[i].fd < 0 || sources[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const auto n = ::read(sources[i].fd, buffer.data(), buffer.size());
      if (n > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        sources[i].fd = -1;
      }
    }
  }
  return true;
}

}  // namespace

std::string process_result::failure() const {
  std::string sentence;
  if (timed_out) {
    sentence = "took longer than " + std::to_string(static_cast<int>(seconds)) + " s and was killed";
  } else if (signal != 0) {
    const char* name = ::sigabbrev_np(signal);
    sentence = "was killed by SIG" + std::string{name != nullptr ? name : std::to_string(signal).c_str()};
  } else {
    sentence = "ended with status " + std::to_string(exit_code);
  }
  if (!err.empty()) sentence += ": " + err.substr(0, err.find('\n'));
  return sentence;
}

process_result run_process(const std::vector<std::string>& command, const process_options& options) {
  std::vector<char*> arguments;
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  auto out = make_pipe(), err = make_pipe(), trouble = make_pipe();
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) become(arguments, options, out.write.get(), err.write.get(), trouble.write.get());
  ::setpgid(child, child);  // in both: whoever comes first
  out.write.close();
  err.write.close();
  trouble.write.close();

  process_result result;
  result.timed_out = !collect(out, err, result, start + options.limit);
  if (result.timed_out) ::kill(-child, SIGKILL);

  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.peak_rss_kib = usage.ru_maxrss;
  if (int why = 0; ::read(trouble.read.get(), &why, sizeof why) == sizeof why) {
    errno = why;
    fail("cannot run " + command.front());
  }
  if (WIFEXITED(status)) {
    result.exit_code = WEXITSTATUS(status);
  } else {
    result.signal = WTERMSIG(status);
  }
  return result;
}

}  // namespace bench
