// A stop that ends a task which waits.
#include "walk.hpp"

#include <functional>
#include <utility>
#include <weft/weft.hpp>

namespace {

weft::task<> child(weft::event& never) { co_await never.wait(); }

weft::task<> parent(weft::scope& s, weft::event& never) {
  weft::fork<> one = s.fork(child(never));
  walk_begins();
  one.request_stop();
  [[maybe_unused]] const auto how = co_await weft::as_result(std::move(one));
  walk_ends();
}

}  // namespace

int main() {
  weft::event never;
  weft::sync_wait(weft::with_scope(parent, std::ref(never)));
}
