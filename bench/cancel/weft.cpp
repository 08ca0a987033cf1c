#include "workload.hpp"

#include <weft/clock.hpp>
#include <weft/scope.hpp>

namespace {

struct leaf_ends {
  std::size_t& count;
  ~leaf_ends() { ++count; }
};

// What all leaves wait for: one fork that sleeps.
weft::task<> for_ever() { co_await weft::sleep_for(std::chrono::hours{1}); }

weft::task<> leaf(weft::fork_view<> event, std::size_t& ended) {
  const leaf_ends here{ended};
  co_await event;
}

weft::task<> node(int depth, weft::fork_view<> event, std::size_t& ended) {
  auto body = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != bench::children_of_a_node; ++i)
      if (depth == 1)
        s.fork(leaf(event, ended));
      else
        s.fork(node(depth - 1, event, ended));
    co_return;
  };
  co_await weft::with_scope(body);
}

class tree {
 public:
  explicit tree(std::size_t leaves) {
    auto whole = [](int depth, weft::stop_token stop, std::size_t& ended) -> weft::task<> {
      auto body = [&](weft::scope& s) -> weft::task<> { co_await node(depth, s.fork(for_ever()).view(), ended); };
      co_await weft::with_scope({.stop = stop}, body);
    };
    weft::start(whole(bench::depth_of(leaves), stop_.token(), ended_), [](weft::result<void>) {});
  }
  tree(const tree&) = delete;

  std::size_t stop() {
    stop_.request_stop();
    return ended_;
  }

 private:
  weft::stop_source stop_;
  std::size_t ended_ = 0;
};

}  // namespace

void bench::run(bench::state& state) { measure_cancel<tree>(state); }
