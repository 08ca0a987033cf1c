// The one worker of a guest runtime: a thread that belongs to another library's loop, which calls in when there is something
// to do. Waits for sockets by epoll, whose set that loop waits for in turn: it becomes readable for a socket, and by an eventfd
// in it for what other threads post.
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
  /// Runs up to `budget` jobs that are ready, without waiting. How many.
  std::size_t run_ready(std::size_t budget) noexcept;
  /// Runs jobs, and sleeps in between, until one of them has set `over`.
  void run_until(const bool& over) noexcept;
  epoll::counts so_far() const noexcept { return set_.so_far(); }
  std::size_t watched() const noexcept { return set_.watched(); }

 private:
  // The calling thread's use of the loop: there is one at a time, and always by the same thread.
  class turn;
  void look(epoll::time_point until) noexcept;

  mutable epoll set_;
  epoll::changes changes_;
  manual_executor jobs_;
  // Its thread, from the first call on; relaxed: another one finds that it is none, whatever it reads.
  std::atomic<std::uintptr_t> owner_{0};
  bool is_inside_ = false;  // its thread's
};

}  // namespace weft::detail
