// pwrite(), on as many threads as writes are to be under way at once.
#include <atomic>
#include <thread>
#include <vector>

#include "writes.hpp"

namespace {

struct work {
  const bench::write_options& how;
  int number;
  std::uint64_t count;
  std::atomic<std::uint64_t> next{0}, right{0};
};

void write_some(work& all) {
  void* const piece = bench::make_piece(all.how);
  std::uint64_t right = 0;
  for (std::uint64_t one; (one = all.next.fetch_add(1, std::memory_order_relaxed)) < all.count;) {
    bench::fill(piece, one);
    const auto at = static_cast<off_t>(all.how.block_of(one) * all.how.bytes);
    const ssize_t size = ::pwrite(all.number, piece, all.how.bytes, at);
    const bool is_there = !all.how.syncs || ::fdatasync(all.number) == 0;
    if (size == static_cast<ssize_t>(all.how.bytes) && is_there) ++right;
  }
  all.right += right;
  std::free(piece);
}

}  // namespace

int main(int count, char** words) {
  const bench::write_options how{count, words};
  const int number = ::open(how.path.c_str(), how.flags());
  bench::serve_reads([&](std::uint64_t writes) {
    work all{how, number, writes};
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < how.at_once; ++i) others.emplace_back([&all] { write_some(all); });
    write_some(all);
    others.clear();
    return all.right.load();
  });
}
