// A fiber: begun, it waits, is woken, and ends.
#include "walk.hpp"

#include <utility>
#include <weft/weft.hpp>

namespace {

weft::task<> parent(weft::scope& s) {
  weft::event ready;
  co_await s.go([] {});  // the first fiber makes the process's pool of stacks
  walk_begins();
  weft::fork<> one = s.go([&] { weft::await(ready.wait()); });
  ready.set();
  co_await std::move(one);
  walk_ends();
}

}  // namespace

int main() { weft::sync_wait(weft::with_scope(parent)); }
