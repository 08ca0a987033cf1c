#include "io/io_service.hpp"

#include <weft/error.hpp>

#include "base/spin.hpp"
#include "pool/process_forks.hpp"

namespace weft::detail {

static_assert(sizeof(descriptor) == 128, "two cache lines, since each connection has one");

io_service::io_service() noexcept
    : forks_{(count_forks(), forks_of_process.load(std::memory_order_relaxed))} {}  // as declared

bool io_service::is_inherited() const noexcept {
  return forks_ != forks_of_process.load(std::memory_order_relaxed);  // as declared
}

descriptor& io_service::watch(int number, bool tries_first) {
  WEFT_EXPECTS(
      !is_inherited(),
      "a socket or another descriptor was made in a runtime of the process that this one was forked from: only "
      "that process has the threads that would wait for it");
  descriptor* one;
  {
    const std::lock_guard guard{lock_};
    if (unused_ == nullptr) {
      slabs_.push_back(std::make_unique<descriptor[]>(slab));
      for (std::size_t i = slab; i-- != 0;) {
        slabs_.back()[i].next = unused_;
        unused_ = &slabs_.back()[i];
      }
    }
    one = unused_;
    unused_ = one->next;
    ++watched_;
  }
  one->begin(*this, number, tries_first);
  if (const int refused = begin_to_watch(*one); refused != 0) {
    one->forget();  // and not release(): the number may be watched for another user
    one->drop();
    throw error{std::error_code{refused, std::generic_category()}, "watch a file descriptor"};
  }
  return *one;
}

void io_service::give_back(descriptor& one) noexcept {
  // In a forked child this is a copy of the parent's service. A thread of the parent may have held the lock at the fork, and
  // nobody unlocks it here. The descriptor's memory is not needed again, since the child watches nothing with this copy.
  if (is_inherited()) return;
  if (retire(one)) use_again(one);
  const std::lock_guard guard{lock_};
  --watched_;  // the last access: at 0 the service may be destroyed
}

void io_service::wait_for_visitors() const noexcept {
  spin_wait wait;
  while (visitors_.load(std::memory_order_acquire) != 0) wait.once();  // <- visited (no model: as declared)
}

void io_service::use_again(descriptor& one) noexcept {
  const std::lock_guard guard{lock_};
  one.next = unused_;
  unused_ = &one;
}

bool io_service::is_watched_by_another(const descriptor& one) noexcept {
  bool is = false;
  std::size_t from = 0;
  for_each(from, [&](const descriptor& each) { return !(is = &each != &one && each.number() == one.number()); });
  return is;
}

std::size_t io_service::watched() const noexcept {
  const std::lock_guard guard{lock_};
  return watched_;
}

}  // namespace weft::detail
