// pread(), on as many threads as reads are to be under way at once.
#include <atomic>
#include <thread>
#include <vector>

#include "reads.hpp"

namespace {

struct work {
  const bench::read_options& how;
  int number;
  std::uint64_t count;
  std::atomic<std::uint64_t> next{0}, right{0};
};

void read_some(work& all) {
  void* const buffer = std::aligned_alloc(4096, all.how.bytes);
  std::uint64_t right = 0;
  for (std::uint64_t one; (one = all.next.fetch_add(1, std::memory_order_relaxed)) < all.count;) {
    const std::uint64_t block = all.how.block_of(one);
    const ssize_t size = ::pread(all.number, buffer, all.how.bytes, static_cast<off_t>(block * all.how.bytes));
    if (size == static_cast<ssize_t>(all.how.bytes) && all.how.is_right(buffer, block)) ++right;
  }
  all.right += right;
  std::free(buffer);
}

}  // namespace

int main(int count, char** words) {
  const bench::read_options how{count, words};
  const int number = ::open(how.path.c_str(), how.flags());
  bench::serve_reads([&](std::uint64_t reads) {
    work all{how, number, reads};
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < how.at_once; ++i) others.emplace_back([&all] { read_some(all); });
    read_some(all);
    others.clear();
    return all.right.load();
  });
}
