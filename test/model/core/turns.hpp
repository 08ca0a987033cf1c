// In the place of src/core/turns.hpp: nothing that a model runs is traced, and nothing is recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <weft/detail/core/root.hpp>
#include <weft/recorded_event.hpp>

#include "base/stamp.hpp"
#include "core/worker.hpp"

namespace weft::detail {

class request_trace;

inline void record(event_kind, std::uint32_t, std::uint64_t = 0, std::uint64_t = 0) noexcept {}
inline std::uint64_t as_number(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }
inline void count_io(std::size_t) noexcept {}

// Of traced roots only.
inline void begin_turn(worker&, root&, request_trace&, bool) noexcept { std::abort(); }
inline void end_turn_of(worker&, const root&, std::uint16_t) noexcept { std::abort(); }
inline void note_wait_of_borrower(worker&, root&, bool) noexcept { std::abort(); }
inline void has_woken(worker&, root&) noexcept { std::abort(); }

// Of others, too.
inline void note_post(root&) noexcept {}
inline void end_turn(worker&) noexcept {}

struct outer_turn {
  explicit outer_turn(const worker&) noexcept {}
  void go_on(worker&) const noexcept {}
};

}  // namespace weft::detail
