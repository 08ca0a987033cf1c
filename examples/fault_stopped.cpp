// A planted fault: the report never comes. Nobody near it asks for a stop; far above, somebody has given it too little time.
#include <chrono>
#include <cstdio>
#include <string_view>
#include <tuple>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

void tell(const char* who, const w::stop_cause& why) {
  const std::string_view path = why.where.file_name();
  std::printf("%s: %s (%s:%u)\n", who, why.reason, path.substr(path.rfind('/') + 1).data(), unsigned(why.where.line()));
}

struct tells_why {
  const char* who;
  ~tells_why() {
    for (const w::stop_cause& why : w::why_stopped()) tell(who, why);
  }
};

w::task<int> ask(const char* mirror, std::chrono::milliseconds takes) {
  const tells_why at_end{mirror};
  co_await w::sleep_for(takes);
  co_return 7;
}

w::task<> make_report() {  // the deadline never comes before the mirrors have answered
  std::ignore = co_await w::shielded(w::when_any(ask("south", 1h), ask("north", 0ms)));
  co_await w::sleep_for(1h);  // a report takes its time
  std::puts("the report");
}

w::task<> every_morning() {
  co_await w::with_deadline(500ms, make_report);  // far too little
}

int main() {
  try {
    w::sync_wait(every_morning());
  } catch (const w::stopped& how) {
    for (const w::stop_cause& why : how.causes()) tell("no report", why);
  }
}
