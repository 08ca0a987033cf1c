// The limit: one ring, as many writes in it as are to be under way at once, each with its fdatasync linked to it, and no more than
// one system call for all that are done together.
#include <liburing.h>

#include <cstdio>
#include <vector>

#include "writes.hpp"

namespace {

class writer {
 public:
  writer(const bench::write_options& how, int number) : how_{how}, number_{number} {
    io_uring_params flags{};
    flags.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    const auto entries = static_cast<unsigned>(2 * how.at_once);
    if (::io_uring_queue_init_params(entries, &ring_, &flags) != 0) std::exit(2);
    for (std::size_t i = 0; i != how.at_once; ++i) all_.push_back({.piece = bench::make_piece(how)});
  }

  std::uint64_t write(std::uint64_t count) {
    std::uint64_t next = 0, right = 0, done = 0;
    for (writing& one : all_)
      if (next != count) begin(one, next++);
    while (done != count) {
      ::io_uring_submit_and_wait(&ring_, 1);
      unsigned head = 0, some = 0;
      io_uring_cqe* each;
      io_uring_for_each_cqe(&ring_, head, each) {
        ++some;
        auto& one = *static_cast<writing*>(::io_uring_cqe_get_data(each));
        if (one.parts == parts() && each->res != static_cast<int>(how_.bytes)) one.is_whole = false;
        if (one.parts != parts() && each->res != 0) one.is_whole = false;
        if (--one.parts != 0) continue;
        ++done;
        if (one.is_whole) ++right;
        if (next != count) begin(one, next++);
      }
      ::io_uring_cq_advance(&ring_, some);
    }
    return right;
  }

 private:
  struct writing {
    void* piece;
    int parts = 0;  // that have not ended
    bool is_whole = true;
  };

  int parts() const noexcept { return how_.syncs ? 2 : 1; }
  void begin(writing& one, std::uint64_t which) {
    bench::fill(one.piece, which);
    one.parts = parts();
    one.is_whole = true;
    io_uring_sqe* to = ::io_uring_get_sqe(&ring_);
    ::io_uring_prep_write(to, number_, one.piece, static_cast<unsigned>(how_.bytes), how_.block_of(which) * how_.bytes);
    ::io_uring_sqe_set_data(to, &one);
    if (!how_.syncs) return;
    to->flags |= IOSQE_IO_LINK;
    to = ::io_uring_get_sqe(&ring_);
    ::io_uring_prep_fsync(to, number_, IORING_FSYNC_DATASYNC);
    ::io_uring_sqe_set_data(to, &one);
  }

  const bench::write_options& how_;
  const int number_;
  std::vector<writing> all_;
  io_uring ring_{};
};

}  // namespace

int main(int count, char** words) {
  const bench::write_options how{count, words};
  writer one{how, ::open(how.path.c_str(), how.flags())};
  bench::serve_reads([&](std::uint64_t writes) { return one.write(writes); });
}
