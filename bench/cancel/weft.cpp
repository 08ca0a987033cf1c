#include "workload.hpp"

#include <weft/scope.hpp>
#include <weft/sync.hpp>

namespace {

struct leaf_ends {
  std::size_t& count;
  ~leaf_ends() { ++count; }
};

// All leaves wait for one event.
weft::task<> leaf(weft::event& never, std::size_t& ended) {
  const leaf_ends here{ended};
  co_await never.wait();
}

weft::task<> node(int depth, weft::event& never, std::size_t& ended) {
  auto body = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != bench::children_of_a_node; ++i)
      if (depth == 1)
        s.fork(leaf(never, ended));
      else
        s.fork(node(depth - 1, never, ended));
    co_return;
  };
  co_await weft::with_scope(body);
}

class tree {
 public:
  explicit tree(std::size_t leaves) {
    auto whole = [](int depth, weft::stop_token stop, weft::event& never, std::size_t& ended) -> weft::task<> {
      auto body = [&](weft::scope& s) -> weft::task<> {
        s.fork(node(depth, never, ended));
        co_return;
      };
      co_await weft::with_scope({.stop = stop}, body);
    };
    weft::start(whole(bench::depth_of(leaves), stop_.token(), never_, ended_), [](weft::result<void>) {});
  }
  tree(const tree&) = delete;

  std::size_t stop() {
    stop_.request_stop();
    return ended_;
  }

 private:
  weft::stop_source stop_;
  weft::event never_;
  std::size_t ended_ = 0;
};

}  // namespace

void bench::run(bench::state& state) { measure_cancel<tree>(state); }
