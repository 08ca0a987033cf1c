// A fork on a pool of several threads: left for others to take, and taken back by whoever awaits it.
#include "walk.hpp"

#include <utility>
#include <weft/weft.hpp>

namespace {

weft::task<int> child() { co_return 7; }

weft::task<int> parent(weft::scope& s) {
  walk_begins();
  weft::fork<int> seven = s.fork(child());
  const int got = co_await std::move(seven);
  walk_ends();
  co_return got;
}

}  // namespace

int main() {
  weft::pool workers{{.threads = 2}};
  workers.limit_awake(1);  // nobody else does take it
  return workers.run(weft::with_scope(parent)) == 7 ? 0 : 1;
}
