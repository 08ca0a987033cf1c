// A cache with single flight: tasks that ask for the same key at once share one load, by a shared_task. A load that fails, or
// is stopped since all who waited for it were, is forgotten by itself, and the next one who asks tries again.
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

class cache {  // of one thread or strand; for several: weft::guarded
 public:
  int loads = 0;

  w::task<std::string> get(std::string key) {
    for (;;) {
      auto found = entries_.find(key);
      const bool is_first = found == entries_.end();
      if (is_first) found = entries_.emplace(key, load_or_forget(key)).first;
      const w::shared_task<std::string> mine = found->second;  // the entry may be gone when this goes on
      if (is_first) co_return co_await mine;
      auto value = co_await w::as_result(mine);
      if (!value.is_stopped()) co_return std::move(value).value();
      co_await w::check_stop();  // else it was being stopped, with the last one that waited for it, when this one came
    }
  }

 private:
  struct forgets {
    cache& of;
    const std::string& key;
    bool is_loaded = false;
    ~forgets() {
      if (!is_loaded) of.entries_.erase(key);
    }
  };

  w::task<std::string> load_or_forget(std::string key) {
    forgets unless_loaded{*this, key};
    std::string value = co_await load(key);
    unless_loaded.is_loaded = true;
    co_return value;
  }
  w::task<std::string> load(std::string key) {  // stands for a query
    const bool is_broken = ++loads == 1;
    co_await w::sleep_for(5ms);
    if (is_broken) throw std::runtime_error{"no route"};
    co_return "value of " + key;
  }

  std::map<std::string, w::shared_task<std::string>> entries_;
};

w::task<> run() {
  cache of;
  const auto once = [&] { return of.get("red"); };
  std::vector<w::task<std::string>> askers;
  for (int i = 0; i != 100; ++i) askers.push_back(w::retry({.delay = 10ms}, once));
  const std::vector<std::string> got = co_await w::when_all(std::move(askers));
  std::printf("%zu askers, %d loads, of which one failed: %s\n", got.size(), of.loads, got[0].c_str());
}

int main() { w::test::run(run); }
