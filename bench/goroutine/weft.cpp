#include "echoes.hpp"

namespace {

weft::task<> echo(bench::channels& mine) {
  while (const auto number = co_await mine.in.receive()) co_await mine.out.send(*number);
}

void fork_echo(weft::scope& s, bench::channels& mine) { s.fork(echo(mine)); }

}  // namespace

void bench::run(bench::state& state) { measure_goroutines<echoes<fork_echo>>(state); }
