#include "trace/request_trace.hpp"

#include <new>

namespace weft::detail {
namespace {

constinit std::atomic<std::uint32_t> last_number{0};  // relaxed: only that numbers differ counts

// 0 is none.
std::uint32_t next_number() noexcept {
  std::uint32_t number;
  do number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;  // as declared
  while (number == 0);
  return number;
}

}  // namespace

request_trace::request_trace(const char* name) noexcept : number_{next_number()}, name_{name} {}

request_trace::~request_trace() {
  for (const trace_part* one = first(); one != nullptr;) {
    const trace_part* const next = one->next;
    delete one;
    one = next;
  }
}

trace_part* request_trace::part_of(const void* heap) noexcept {
  trace_part* first = this->first();
  for (trace_part* one = first; one != nullptr; one = one->next)
    if (one->whose == heap) return one;
  auto* const mine = new (std::nothrow) trace_part;
  if (mine == nullptr) return nullptr;
  mine->whose = heap;
  do mine->next = first;
  while (!parts_.compare_exchange_weak(first, mine, std::memory_order_release,  // -> part (no model: as declared)
                                       std::memory_order_relaxed));  // tried again
  return mine;
}

void trace_part::waited(const char* kind, std::uint64_t ticks) noexcept {
  for (std::size_t i = 0; i + 1 != kinds; ++i) {
    wait& one = waits[i];
    const char* const its = one.kind.load(std::memory_order_relaxed);     // as declared
    if (its == nullptr) one.kind.store(kind, std::memory_order_relaxed);  // as declared
    if (its == nullptr || its == kind) return one.ended.add(ticks);
  }
  waits[kinds - 1].kind.store("other", std::memory_order_relaxed);  // as declared
  waits[kinds - 1].ended.add(ticks);
}

}  // namespace weft::detail
