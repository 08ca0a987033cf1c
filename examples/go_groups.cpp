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

w::event asked, hanging_up;  // a load says where it is
std::chrono::milliseconds load_takes = 50ms;

w::task<> hang_up() {
  hanging_up.set();
  co_await w::sleep_for(1ms);
}

w::task<std::string> load(std::string key) {
  std::printf("singleflight: loading %s\n", key.c_str());
  co_await w::on_scope_exit(hang_up());
  asked.set();
  co_await w::sleep_for(load_takes);
  co_return "the value of " + key;
}

// Of one thread; on a pool, with w::guarded<std::map<…>>.
class flights {
 public:
  w::task<std::string> get(std::string key) {
    for (;;) {
      auto found = running_.find(key);
      const bool is_first = found == running_.end();
      if (is_first) found = running_.emplace(key, fly(key)).first;
      const w::shared_task<std::string> mine = found->second;
      if (is_first) co_return co_await mine;
      auto joined = co_await w::as_result(mine);
      if (!joined.is_stopped()) co_return std::move(joined).value();
      co_await w::check_stop();  // else all others have left it before this one came: the next one is not stopped
    }
  }

 private:
  struct landing {
    flights& of;
    const std::string& key;
    ~landing() { of.running_.erase(key); }
  };

  w::task<std::string> fly(std::string key) {
    const landing at_the_end{*this, key};  // also where it fails, and where nobody waits any longer
    co_return co_await load(key);
  }

  std::map<std::string, w::shared_task<std::string>> running_;
};

w::task<> singleflight() {
  flights cache;
  std::vector<w::task<std::string>> callers;
  for (int i = 0; i != 3; ++i) callers.push_back(cache.get("pi"));
  for (const std::string& value : co_await w::when_all(std::move(callers)))
    std::printf("singleflight: %s\n", value.c_str());

  asked.reset(), hanging_up.reset();
  load_takes = 1h;
  auto comes_as_the_last_one_leaves = [&cache](w::scope& s) -> w::task<> {
    auto impatient = s.fork(cache.get("e"));
    co_await asked.wait();
    impatient.request_stop();
    load_takes = 50ms;
    co_await hanging_up.wait();
    const std::string value = co_await cache.get("e");  // waits until that load has ended, and loads again
    std::printf("singleflight: %s\n", value.c_str());
  };
  co_await w::with_scope(comes_as_the_last_one_leaves);
}

w::task<> run() {
  co_await errgroup();
  co_await context();
  co_await singleflight();
}

int main() {
  const w::pool one{{.threads = 1}};  // so that `flights` is of one thread, wherever a sleep ends
  w::sync_wait(w::start_on(one, run()));
}
