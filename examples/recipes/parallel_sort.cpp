// A parallel merge sort in bounded memory: one room as large as the data, taken once, and a frame a level. What sorts itself
// reads and writes all of the data again and again, so soon memory is the limit: pieces that fit a core's cache are cut no
// further.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using numbers = std::span<std::uint32_t>;

std::size_t piece = 32 * 1024;  // 128 KiB

// Merges two sorted spans into what begins at `to`. Cuts the longer one in the middle, and the other one where that belongs.
w::task<> merge_sorted(numbers a, numbers b, std::uint32_t* to) {
  if (a.size() + b.size() <= piece) {
    std::ranges::merge(a, b, to);
    co_return;
  }
  if (a.size() < b.size()) std::swap(a, b);
  const std::size_t in_a = a.size() / 2;
  const auto in_b = static_cast<std::size_t>(std::ranges::lower_bound(b, a[in_a]) - b.begin());
  co_await w::when_all(merge_sorted(a.first(in_a), b.first(in_b), to),
                       merge_sorted(a.subspan(in_a), b.subspan(in_b), to + in_a + in_b));
}

// Sorts `data`; the result is in `room` if that is wanted, else in `data`. Halves are sorted into the other one of the two.
w::task<> merge_sort(numbers data, numbers room, bool into_room = false) {
  if (data.size() <= piece) {
    std::ranges::sort(data);
    if (into_room) std::ranges::copy(data, room.begin());
    co_return;
  }
  const std::size_t half = data.size() / 2;
  co_await w::when_all(merge_sort(data.first(half), room.first(half), !into_room),
                       merge_sort(data.subspan(half), room.subspan(half), !into_room));
  const numbers from = into_room ? data : room;
  co_await merge_sorted(from.first(half), from.subspan(half), (into_room ? room : data).data());
}

int main() {
  std::vector<std::uint32_t> data(300'000), room(data.size());
  std::uint32_t random = 1;
  for (std::uint32_t& one : data) one = random = random * 1664525 + 1013904223;
  w::pool workers{{.use_caller = true}};
  workers.run(merge_sort(data, room));
  std::printf("%zu numbers, %s\n", data.size(), std::ranges::is_sorted(data) ? "sorted" : "in disorder");
}
