#include "echoes.hpp"

#include <weft/fiber.hpp>

namespace {

void fork_echo(weft::scope& s, bench::channels& mine) {
  s.go([&mine] {
    while (const auto number = weft::await(mine.in.receive())) weft::await(mine.out.send(*number));
  });
}

}  // namespace

void bench::run(bench::state& state) { measure_goroutines<echoes<fork_echo>>(state); }
