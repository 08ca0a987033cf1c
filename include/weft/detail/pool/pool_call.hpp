// A call of pool::run(): its root, and the place of a worker in which the calling thread works for the pool meanwhile. Part of
// pool.hpp.
#pragma once

#include <weft/detail/core/cause_list.hpp>
#include <weft/detail/core/top_root.hpp>
#include <weft/env.hpp>
#include <weft/executor.hpp>
#include <weft/stop.hpp>

namespace weft::detail {

class pool_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

/// A call of pool::run() by a thread that works for the pool meanwhile.
class pool_call final : public awaited_root {
 public:
  /// Takes the place of a caller, if there is one and nobody has it.
  pool_call(pool_core& of, weft::executor& there, stop_token stop) noexcept;
  pool_call(const pool_call&) = delete;
  ~pool_call();  // leaves it

  /// Whether the pool has such a place.
  bool may_help() const noexcept;

  /// Runs what was adopted to its end, in that place as soon as nobody else has it. False: it ended stopped.
  bool run() noexcept;

  /// Throws `stopped`, with its causes. After that.
  [[noreturn]] void throw_stopped() const;

 private:
  struct end_of_call : job {
    bool over = false;
    end_of_call() noexcept { run = hear_of_it; }
    static void hear_of_it(job& self) noexcept;
  };
  static void ended(root& self, bool stopped) noexcept;

  pool_core* of_;
  end_of_call end_;      // what tells the caller
  bool inside_ = false;  // under the callers' lock, as end_.over is as long as this is not
  bool stopped_ = false;
  union {
    cause_list causes_;  // if so
  };
};

}  // namespace weft::detail
