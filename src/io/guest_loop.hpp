// The one worker of a guest runtime: a thread that belongs to another library's loop, which calls in when there is something
// to do. The guest runtime has an epoll set, whose descriptor that loop polls: the descriptor becomes readable when a socket is
// ready, and by an eventfd in the set when another thread posts.
#pragma once

#include <atomic>
#include <cstddef>
#include <weft/executor.hpp>

#include "core/worker.hpp"
#include "io/epoll.hpp"

namespace weft::detail {

class guest_loop final : public executor {
 public:
  /// Throws error.
  guest_loop() = default;
  guest_loop(const guest_loop&) = delete;
  ~guest_loop() { wait_for_posters(this); }

  void post(job& work) noexcept override;
  io_service* io() const noexcept override { return &set_; }

  int number() const noexcept { return set_.number(); }
  /// Runs up to `budget` jobs that are ready, without waiting. Returns how many it ran.
  std::size_t run_ready(std::size_t budget) noexcept;
  /// Runs jobs, and sleeps in between, until one of them has set `over`.
  void run_until(const bool& over) noexcept;
  epoll::counts so_far() const noexcept { return set_.so_far(); }
  std::size_t watched() const noexcept { return set_.watched(); }

 private:
  // A call that runs jobs. Asserts that there is one at a time, and that it is always the same thread's.
  class turn;
  void look(epoll::time_point until) noexcept;

  mutable epoll set_;
  epoll::changes changes_;
  manual_executor jobs_;
  // The id of the thread that runs the loop, from the first call on. Relaxed: another thread never reads its own id here.
  std::atomic<std::uintptr_t> owner_{0};
  bool is_inside_ = false;  // a call runs jobs; only the owner reads and writes it
};

}  // namespace weft::detail
