#include <weft/traced.hpp>

#include <atomic>
#include <new>
#include <string_view>

#include "core/run_loop.hpp"
#include "core/turns.hpp"
#include "core/worker.hpp"
#include "trace/request_trace.hpp"

namespace weft {
namespace detail {
namespace {

constinit std::atomic<std::uint32_t> calls{0};  // relaxed: only how many there were counts

bool is_chosen(unsigned one_in) noexcept {
  if (one_in <= 1) return one_in == 1;
  return calls.fetch_add(1, std::memory_order_relaxed) % one_in == 0;  // as declared
}

request_trace* trace_here() noexcept {
  const frame_source* const frames = current_env().frames;
  return frames != nullptr ? frames->trace() : nullptr;
}

}  // namespace

request_trace& trace_scope::trace() noexcept { return *std::launder(reinterpret_cast<request_trace*>(&trace_)); }

trace_scope::trace_scope(const trace_options& options) noexcept {
  static_assert(sizeof(request_trace) <= sizeof(room) && alignof(request_trace) <= alignof(room));
  if (trace_here() != nullptr || !is_chosen(options.one_in)) return;
  request_trace& mine = *::new (static_cast<void*>(&trace_)) request_trace{options.name};
  changed_.emplace();
  frames_.emplace(mine, changed_->now.frames);
  changed_->now.frames = &*frames_;
  worker& here = this_worker();
  record_at(here, stamp_now(), event_kind::trace_begins, mine.number(), as_number(here.current),
            as_number(mine.name()));
  changed_->apply();  // begins a turn
}

trace_scope::~trace_scope() {
  if (!changed_) return;
  worker& here = this_worker();
  root& self = *here.current;
  end_turn_of(here, self, 0);
  self.before_wait &= static_cast<std::uint8_t>(~root::is_traced);
  record_at(here, stamp_now(), event_kind::trace_ends, trace().number(), as_number(&self));
  changed_.reset();
  frames_.reset();
  trace().~request_trace();
}

}  // namespace detail

bool this_task::is_traced() noexcept { return detail::trace_here() != nullptr; }

namespace {

// The same kind may have several names at different addresses: where a library has its own.
void add(ledger& to, const char* kind, std::uint64_t times, std::chrono::nanoseconds time) noexcept {
  to.waiting += time;
  for (ledger::wait& one : std::span{to.kinds.data(), to.kind_count})
    if (std::string_view{one.kind} == kind) {
      one.times += times;
      one.time += time;
      return;
    }
  if (to.kind_count != ledger::most_kinds) to.kinds[to.kind_count++] = {kind, times, time};
}

}  // namespace

ledger current_ledger() noexcept {
  ledger all;
  const detail::request_trace* const trace = detail::trace_here();
  if (trace == nullptr) return all;
  const detail::stamp_scale scale = detail::stamp_scale::now();
  const auto time = [&](const detail::count& ticks) {
    return std::chrono::nanoseconds{scale.nanoseconds(ticks.get())};
  };
  all.running = std::chrono::nanoseconds{scale.nanoseconds(detail::running_not_counted(detail::this_worker()))};
  for (const detail::trace_part* one = trace->first(); one != nullptr; one = one->next) {
    all.turns += one->turns.times.get();
    all.running += time(one->turns.ticks);
    all.queued += time(one->queued.ticks);
    all.frames += one->frames.get();
    all.frame_bytes += one->frame_bytes.get();
    all.io_operations += one->io_operations.get();
    all.io_bytes += one->io_bytes.get();
    for (const detail::trace_part::wait& wait : one->waits)
      if (const char* const kind = wait.kind.load(std::memory_order_relaxed); kind != nullptr)  // as declared
        add(all, kind, wait.ended.times.get(), time(wait.ended.ticks));
  }
  return all;
}

}  // namespace weft
