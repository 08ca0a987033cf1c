// What a runtime is, with rings of a size of one's own.
#pragma once

#include <utility>
#include <weft/io_backend.hpp>
#include <weft/pool.hpp>
#include <weft/task.hpp>

#include "io/uring.hpp"
#include "pool/pool_core.hpp"

namespace test {

class small_runtime {
 public:
  explicit small_runtime(unsigned threads, weft::detail::ring_size size) : rings_{threads, size} {
    refused_ = rings_.make_rings();
    if (refused_ != 0) return;
    core_ = weft::detail::pool_core::make({.threads = threads},
                                          {.of = [](unsigned worker, void* its) -> weft::detail::parker& {
                                             return static_cast<small_runtime*>(its)->rings_.worker(worker);
                                           },
                                           .with = this,
                                           .io = &rings_});
    rings_.begin(*core_);
  }
  small_runtime(const small_runtime&) = delete;
  ~small_runtime() {
    if (core_ == nullptr) return;
    core_->shut_down(weft::pool_shutdown::drain);
    rings_.end();
    core_->release();
  }

  bool is_refused() const { return refused_ != 0; }
  void run(weft::task<> body) { weft::sync_wait(weft::start_on(*core_, std::move(body))); }
  weft::io_stats stats() const { return rings_.stats(); }

 private:
  weft::detail::uring rings_;
  int refused_ = 0;
  weft::detail::pool_core* core_ = nullptr;
};

}  // namespace test
