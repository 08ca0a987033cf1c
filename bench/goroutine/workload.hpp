// goroutine: the program by which libcopp's report measures Go. Each of --size has an in and an out channel with room
// for one; it receives from the one and sends what it got to the other, until the in channel is closed. One item is a
// switch there and back: a number is sent in, and received out; each of all is served in turn, over and over. That
// program is `goroutine [N] [SWITCHES]`, 30,000 and 1000 if it is not told: here --size and --switches. A full run serves
// each 1000 times, another one as often as it has time for.
//
// What its other phases take is reported beside it: creating the channels, starting all, and closing until all have ended.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

/// How often each is served; 0: as often as there is time for.
inline std::size_t switches_of_each(state& state) { return state.option("--switches", state.full() ? 1000 : 0); }

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
  const std::size_t once = count * (count - 1) / 2;
  if (const std::size_t switches = switches_of_each(state); switches == 0) {
    state.measure(count, once, [&] { return echoes.sweep(); });
  } else {
    state.report("switches of each", static_cast<double>(switches));
    state.measure_once(count * switches, once * switches, [&] {
      std::size_t sum = 0;
      for (std::size_t i = 0; i != switches; ++i) sum += echoes.sweep();
      return sum;
    });
  }
  begin = state::clock::now();
  echoes.close();
  phase("close ns");
}

}  // namespace bench
