// The limit: what the system takes for a guard and the first page of each stack, by the dozen where it can, and nothing
// else. No coroutine runs. A library whose stacks are guarded can't be below this on the same machine.
#include "workload.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace {

constexpr std::size_t page = 4096, guard = std::size_t{64} << 10, slot = guard + bench::stack_of_each + page;
constexpr std::size_t at_once = 64;

constexpr int guard_install = 102, populate_write = 23;  // Linux 6.13 and 5.14
constexpr int this_process = -10'001;                    // PIDFD_SELF_THREAD_GROUP, Linux 6.15

void advise(const std::array<iovec, at_once>& ranges, std::size_t count, int advice) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i != count; ++i) bytes += ranges[i].iov_len;
  if (::syscall(SYS_process_madvise, this_process, ranges.data(), count, advice, 0) == static_cast<long>(bytes)) return;
  for (std::size_t i = 0; i != count; ++i) ::madvise(ranges[i].iov_base, ranges[i].iov_len, advice);
}

class stacks {
 public:
  stacks() = default;
  explicit stacks(std::size_t count) : count_{count} {
    void* const all =
        ::mmap(nullptr, count * slot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc{};
    all_ = static_cast<std::byte*>(all);
    std::array<iovec, at_once> guards, tops;
    for (std::size_t first = 0; first < count; first += at_once) {
      const std::size_t now = std::min(at_once, count - first);
      for (std::size_t i = 0; i != now; ++i) {
        std::byte* const begin = all_ + (first + i) * slot;
        guards[i] = {begin, guard};
        tops[i] = {begin + slot - page, page};
      }
      advise(guards, now, guard_install);
      advise(tops, now, populate_write);
      for (std::size_t i = 0; i != now; ++i) *static_cast<volatile char*>(tops[i].iov_base) = 1;
    }
  }
  stacks(stacks&& other) noexcept { swap(other); }
  stacks& operator=(stacks&& other) noexcept {
    swap(other);
    return *this;
  }
  ~stacks() {
    if (all_ != nullptr) ::munmap(all_, count_ * slot);
  }
  std::size_t size() const { return count_; }

 private:
  void swap(stacks& other) noexcept {
    std::swap(all_, other.all_);
    std::swap(count_, other.count_);
  }
  std::byte* all_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace

void bench::run(bench::state& state) {
  measure_at_once(state, [](std::size_t count) { return stacks{count}; }, [](stacks&) {});
}
