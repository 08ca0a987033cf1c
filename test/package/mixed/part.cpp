// Half of a program whose other half is the same file in the other compiler's object: all that awaits many times without
// waiting, and a stop that unwinds what waits. Each is compiled with PART, the namespace that it is in; what they
// instantiate from weft is the same.
#include <vector>
#include <weft/async_generator.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace PART {
namespace {

using weft::task;

task<long> one() { co_return 1; }
task<long> (*volatile hidden)() = one;

task<long> loop(long rounds) {
  long sum = 0;
  for (long i = 0; i != rounds; ++i) sum += co_await hidden();
  co_return sum;
}
task<long> recursion(long depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await recursion(depth - 1);
}
task<long> results(long depth) {
  if (depth == 0) co_return 0;
  const weft::result<long> below = co_await weft::as_result(results(depth - 1));
  co_return 1 + *below;
}
weft::async_generator<long> ones(long count) {
  for (long i = 0; i != count; ++i) co_yield long{1};
}
task<long> generated(long count) {
  weft::async_generator<long> source = ones(count);
  long sum = 0;
  while (const long* value = co_await source.next()) sum += *value;
  co_return sum;
}

struct alive {
  explicit alive(int& of) : count{of} { ++count; }
  ~alive() { --count; }
  alive(const alive&) = delete;
  int& count;
};
task<long> stops(int depth, int& count) {
  const alive mine{count};
  if (depth == 0) co_await weft::check_stop();
  if (depth % 2 == 0) co_return co_await stops(depth - 1, count);
  std::vector<task<long>> stored;
  stored.push_back(stops(depth - 1, count));
  co_return co_await std::move(stored.front());
}

}  // namespace

// Whether a stop takes each frame down once.
bool unwinds() {
  int count = 0;
  weft::stop_source source;
  source.request_stop();
  try {
    weft::sync_wait(stops(9, count), source.token());
    return false;
  } catch (const weft::stopped&) {
    return count == 0;
  }
}

task<bool> runs(long million) {
  co_return co_await loop(million) == million&& co_await recursion(million) ==
          million&& co_await results(million / 10) == million / 10 &&
      co_await generated(million) == million;
}

}  // namespace PART
