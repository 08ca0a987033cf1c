// The flight recorder's ring: a reader gets events that are whole, while the writer goes round. See trace/event_ring.hpp.
// Mutates: src/trace/event_ring.hpp
#include "model.hpp"
#include "trace/event_ring.hpp"

namespace {

using namespace weft;
using namespace weft::detail;

constexpr std::size_t places = 2;

struct ring_and_memory {
  atomic<std::uint64_t> memory[places * event_ring::words];
  event_ring ring{memory, places};

  ring_and_memory() {
    for (auto& word : memory) word.store(0, std::memory_order_relaxed);
  }

  void write(std::uint64_t number) {
    ring.write(number, event_kind::steal, 0, static_cast<std::uint32_t>(number), number, number);
  }

  // Copies all that is there: each event is the one that was written as that one.
  std::size_t read(std::uint64_t from) {
    recorded_event got[places];
    const std::size_t count = ring.copy(from, got, places);
    for (std::size_t i = 0; i != count; ++i) {
      const std::uint64_t number = from + i + 1;
      RL_ASSERT(got[i].when == number && got[i].number == number && got[i].first == number && got[i].second == number);
      RL_ASSERT(got[i].kind == event_kind::steal);
    }
    return count;
  }
};

// The writer overtakes the reader.
struct read_while_written : rl::test_suite<read_while_written, 2> {
  ring_and_memory all;

  void before() { all.write(1); }
  void thread(unsigned which) {
    if (which == 0) {
      all.write(2);
      all.write(3);
      all.write(4);
    } else {
      all.read(0);
      all.read(1);
    }
  }
  void after() {
    RL_ASSERT(all.ring.written() == 4);
    RL_ASSERT(all.read(0) == 1);  // the place before the newest is where the writer could be
  }
};

}  // namespace

int main() {
  model::check<read_while_written>("read_while_written", 3);
  return 0;
}
