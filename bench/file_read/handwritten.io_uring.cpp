// The limit: one ring, as many reads in it as are to be under way at once, no more than one system call for all that are done
// together.
#include <liburing.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "reads.hpp"

namespace {

struct reading {
  void* buffer;
  std::uint64_t block;
};

class reader {
 public:
  reader(const bench::read_options& how, int number) : how_{how}, number_{number}, all_(how.at_once) {
    io_uring_params flags{};
    flags.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    if (::io_uring_queue_init_params(static_cast<unsigned>(how.at_once), &ring_, &flags) != 0) std::exit(2);
    for (reading& one : all_) one.buffer = std::aligned_alloc(4096, how.bytes);
  }

  std::uint64_t read(std::uint64_t count) {
    std::uint64_t next = 0, right = 0, done = 0;
    for (reading& one : all_)
      if (next != count) begin(one, next++);
    while (done != count) {
      ::io_uring_submit_and_wait(&ring_, 1);
      unsigned head = 0, some = 0;
      io_uring_cqe* each;
      io_uring_for_each_cqe(&ring_, head, each) {
        ++some;
        auto& one = *static_cast<reading*>(::io_uring_cqe_get_data(each));
        if (each->res == static_cast<int>(how_.bytes) && how_.is_right(one.buffer, one.block)) ++right;
        if (next != count) begin(one, next++);
      }
      ::io_uring_cq_advance(&ring_, some);
      done += some;
    }
    return right;
  }

 private:
  void begin(reading& one, std::uint64_t which) {
    one.block = how_.block_of(which);
    io_uring_sqe* const to = ::io_uring_get_sqe(&ring_);
    ::io_uring_prep_read(to, number_, one.buffer, static_cast<unsigned>(how_.bytes), one.block * how_.bytes);
    ::io_uring_sqe_set_data(to, &one);
  }

  const bench::read_options& how_;
  const int number_;
  std::vector<reading> all_;
  io_uring ring_{};
};

}  // namespace

int main(int count, char** words) {
  const bench::read_options how{count, words};
  reader one{how, ::open(how.path.c_str(), how.flags())};
  bench::serve_reads([&](std::uint64_t reads) { return one.read(reads); });
}
