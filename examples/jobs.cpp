// A job runner: programs that are started, two at once, each with a time limit. What is stopped, or takes too long, is ended
// with all that it has started.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

struct job {
  std::string name;
  std::string script;
  w::clock::duration limit;
  std::string said{};
};

w::task<> run(job& one, w::semaphore& at_once) {
  const auto permit = co_await at_once.acquire();
  try {
    const w::process_output got = co_await w::timeout(one.limit, w::output_of({"/bin/sh", "-c", one.script}));
    one.said = got.status.to_string() + ": " + got.out + got.err;
  } catch (const w::error& failure) {
    one.said = failure.what();
  }
}

w::task<> run_all(std::vector<job>& jobs) {
  w::semaphore at_once{2};
  co_await w::with_scope({}, [&](w::scope& all) -> w::task<> {
    for (job& one : jobs) all.fork(run(one, at_once));
    co_return;
  });
}

int main() {
  std::vector<job> jobs{
      {"sum", "echo $((6 * 7))", 1min},
      {"sort", "printf 'pear\\napple\\n' | sort | tr '\\n' ' '", 1min},
      {"fails", "echo no such thing >&2; exit 3", 1min},
      {"hangs", "sleep 1000 & wait", 2s},
      {"is killed", "kill -KILL $$", 1min},
  };
  w::run(run_all(jobs));
  for (const job& one : jobs) std::printf("%s: %s\n", one.name.c_str(), one.said.c_str());
}
