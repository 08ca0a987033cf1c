// libpq's blocking calls in fibers with hooks, on two threads, each a runtime's: a fiber stays on its thread, so what wakes it is
// found there.
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

#include "queries.hpp"

namespace {

class connections {
 public:
  connections(std::size_t count, const char* directory) : all_(count) {
    each([directory](PGconn** one) { *one = bench::connect_to_server(directory); });
  }

  std::uint64_t ask(std::uint64_t queries) {
    std::atomic<std::uint64_t> right{0};
    each([&](PGconn** one) { right += bench::ask(*one, queries); });
    return right;
  }

 private:
  template <class What>
  void each(What what) {
    const auto half = [&](unsigned which) -> weft::task<> {
      const auto body = [&](weft::scope& inside) -> weft::task<> {
        for (std::size_t i = which; i < all_.size(); i += 2) inside.fork(weft::hooked(what, &all_[i]));
        co_return;
      };
      co_await weft::with_scope({.executor = &both_[which].workers().worker(0)}, body);
    };
    std::jthread other{[&] { both_[1].run(half(1)); }};
    both_[0].run(half(0));
  }

  weft::runtime both_[2] = {weft::runtime{{.threads = 1}}, weft::runtime{{.threads = 1}}};
  std::vector<PGconn*> all_;
};

}  // namespace

int main(int count, char** words) {
  connections all{bench::read_server_options(count, words).connections, words[4]};
  bench::serve_queries([&](std::uint64_t queries) { return all.ask(queries); });
}
