// What Go programs do with errgroup, context and singleflight, in weft. The book's page "From Go" has them side by side.
#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

// ---- errgroup: the first failure stops the others, all are joined, and it is what Wait returns -----------------------------

struct says_when_it_ends {
  const char* who;
  ~says_when_it_ends() { std::printf("errgroup: %s was stopped\n", who); }
};

w::task<> slow() {
  const says_when_it_ends here{"the slow one"};
  co_await w::sleep_for(1h);
}

w::task<> broken() {
  co_await w::yield();
  throw std::runtime_error{"no route to the host"};
}

w::task<> errgroup() {
  auto group = [](w::scope& s) -> w::task<> {  // errgroup.WithContext
    s.fork(slow());                            // g.Go
    s.fork(broken());
    co_return;
  };
  try {
    co_await w::with_scope({.max_children = 8}, group);  // g.SetLimit, g.Wait
  } catch (const std::runtime_error& first) {
    std::printf("errgroup: %s\n", first.what());
  }
}

// ---- context: values and deadlines go down with every call, and no function has a parameter for them -----------------------

const w::local<int> request_id{0};  // context.WithValue

w::task<int> query() {
  std::printf("context: request %d asks\n", *request_id);
  co_await w::sleep_for(1h);
  co_return 42;
}

w::task<> handle() {
  const auto answer = co_await w::as_result(w::with_deadline(2ms, query));  // context.WithTimeout
  std::printf("context: %s\n", answer.is_stopped() ? "it took too long" : "an answer");
}

w::task<> context() { co_await w::with_local(request_id, 7, handle); }

// ---- singleflight: who asks for what is on its way shares it ---------------------------------------------------------------

class flights {
 public:
  w::task<std::string> get(std::string key) {
    auto found = running_.find(key);
    if (found == running_.end()) found = running_.emplace(key, fly(key)).first;
    const w::shared_task<std::string> mine = found->second;
    co_return co_await mine;
  }

 private:
  struct landing {
    flights& of;
    const std::string& key;
    ~landing() { of.running_.erase(key); }
  };

  w::task<std::string> fly(std::string key) {
    const landing at_the_end{*this, key};  // also where it fails, and where nobody waits any longer
    std::printf("singleflight: loading %s\n", key.c_str());
    co_await w::sleep_for(1ms);
    co_return "the value of " + key;
  }

  std::map<std::string, w::shared_task<std::string>> running_;  // of one thread; on a pool, w::guarded<std::map<…>>
};

w::task<> singleflight() {
  flights cache;
  std::vector<w::task<std::string>> callers;
  for (int i = 0; i != 3; ++i) callers.push_back(cache.get("pi"));
  for (const std::string& value : co_await w::when_all(std::move(callers)))
    std::printf("singleflight: %s\n", value.c_str());
}

w::task<> run() {
  co_await errgroup();
  co_await context();
  co_await singleflight();
}

int main() {
  const w::pool one{{.threads = 1}};  // so that `flights` is of one thread, wherever a sleep ends
  w::sync_wait(w::start_on(one.executor(), run()));
}
