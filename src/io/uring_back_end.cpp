// The io_uring back end of a runtime: whether this system supports it, and if not, why.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "io/back_end.hpp"
#include "io/uring.hpp"

namespace weft::detail {
namespace {

class uring_back_end final : public back_end {
 public:
  explicit uring_back_end(unsigned workers) : rings_{workers} {}
  int make_rings() noexcept { return rings_.make_rings(); }

  io_service& service() noexcept override { return rings_; }
  parker& parker_of(unsigned worker) override { return rings_.worker(worker); }
  void begin(pool_core& workers) noexcept override { rings_.begin(workers); }
  void end() noexcept override { rings_.end(); }
  void begin_here() override { rings_.begin_here(); }
  bool look() noexcept override { return rings_.worker(0).look(); }
  void report() noexcept override { rings_.worker(0).report(); }
  bool has_calls() const noexcept override { return rings_.worker(0).has_calls(); }
  io_backend kind() const noexcept override { return io_backend::uring; }
  io_stats stats() const noexcept override { return rings_.stats(); }
  std::string explain(unsigned workers) const override {
    const ring_size size = rings_.size();
    return (workers == 1 ? "Its worker has a ring, of "
                         : "Each of " + std::to_string(workers) + " workers has a ring, of ") +
           std::to_string(size.submissions) + " submissions and " + std::to_string(size.completions) +
           " completions; a worker that has nothing to do sleeps in its ring if it waits for sockets there, else on a "
           "futex.";
  }

 private:
  uring rings_;
};

// Older than 6.1, by the version alone: features that a distribution has backported to an older kernel do not count.
bool is_kernel_old(std::string& why_not) {
  utsname system;
  int major = 0, minor = 0;
  if (::uname(&system) != 0 || std::sscanf(system.release, "%d.%d", &major, &minor) != 2) return false;
  if (major > 6 || (major == 6 && minor >= 1)) return false;
  why_not = "Linux " + std::to_string(major) + "." + std::to_string(minor) + " is older than 6.1";
  return true;
}

std::string locked_memory_allowed() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "its limit";
  return std::to_string(limit.rlim_cur / 1024) + " KiB";
}

std::string reason_of(int refused) {
  switch (refused) {
    case EPERM:
    case EACCES:
      return "the system forbids it to this process, by a seccomp filter, as many containers have, or by the sysctl "
             "kernel.io_uring_disabled";
    case ENOSYS:
    case EINVAL: return "the kernel, or what emulates one, has no io_uring, or lacks a part of it that weft needs";
    case ENOMEM:
      return "the memory that this process may lock (RLIMIT_MEMLOCK, " + locked_memory_allowed() +
             ") has no room for its rings";
    default: return "the system refused a ring: " + std::error_code{refused, std::generic_category()}.message();
  }
}

// Makes a small ring and tests in it that one multishot poll of an eventfd reports two writes, though nobody reads the eventfd.
// Returns an error number, or 0.
int try_a_ring() {
  struct eventfd {
    const int number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ~eventfd() { ::close(number); }
  } const wake_fd;
  if (wake_fd.number < 0) return errno;
  kernel_ring ring;
  if (const int refused = ring.make({.submissions = 4, .completions = 8}); refused != 0) return -refused;
  if (const int refused = ring.begin(); refused != 0) return -refused;
  io_uring_sqe* const to = ring.submission();
  if (to == nullptr) return ENOSYS;
  ::io_uring_prep_poll_multishot(to, wake_fd.number, POLLIN);
  ::io_uring_sqe_set_data64(to, 7);
  for (int i = 0; i != 2; ++i) {
    const std::uint64_t one = 1;
    if (i == 1 && ::write(wake_fd.number, &one, sizeof one) < 0) return errno;
    ring.enter();
    if (i == 0) {
      if (ring.has_completions() || ::write(wake_fd.number, &one, sizeof one) < 0) return ENOSYS;
      ring.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds{100});
    }
    io_uring_cqe found;
    if (ring.take(&found, 1) != 1 || found.user_data != 7 || found.res < 0 || (found.flags & IORING_CQE_F_MORE) == 0)
      return ENOSYS;
  }
  return 0;
}

}  // namespace

std::unique_ptr<back_end> make_uring_back_end(unsigned workers, std::string& why_not) {
  if (is_kernel_old(why_not)) return nullptr;
  int refused = try_a_ring();
  auto made = std::make_unique<uring_back_end>(workers);
  if (refused == 0 || refused == ENOMEM) refused = made->make_rings();
  if (refused == 0) return made;
  why_not = reason_of(refused);
  return nullptr;
}

}  // namespace weft::detail
