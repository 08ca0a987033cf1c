// goroutine: the program by which libcopp's report measures Go. Each of --size has an in and an out channel with room
// for one; it receives from the one and sends what it got to the other, until the in channel is closed. One item is a
// switch there and back: a number is sent in, and received out; each of all is served in turn, over and over.
//
// What its other phases take is reported beside it: creating the channels, starting all, and closing until all have ended.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

/// `Echoes{n}` creates the channels; start(); sweep() serves each once with its number, and adds up; close() waits for all.
template <class Echoes>
void measure_goroutines(state& state) {
  const std::size_t count = state.size();
  auto begin = state::clock::now();
  const auto phase = [&](const char* name) {
    const std::chrono::duration<double, std::nano> took = state::clock::now() - begin;
    state.report(name, took.count() / static_cast<double>(count));
    begin = state::clock::now();
  };
  Echoes echoes{count};
  phase("create ns");
  echoes.start();
  phase("start ns");
  state.measure(count, count * (count - 1) / 2, [&] { return echoes.sweep(); });
  begin = state::clock::now();
  echoes.close();
  phase("close ns");
}

}  // namespace bench
