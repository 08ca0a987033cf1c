#include <span>
#include <vector>
#include <weft/weft.hpp>

#include "orders.hpp"

namespace {

struct work {
  std::uint64_t next = 0, right = 0;
};

weft::task<> run_some(work& all, std::uint64_t count) {
  while (all.next != count) {
    ++all.next;
    const weft::exit_status how = co_await weft::run_process({"/bin/true"});
    if (how.is_success()) ++all.right;
  }
}

weft::task<std::uint64_t> run_all(std::uint64_t count, std::size_t at_once) {
  work all;
  std::vector<weft::task<>> those;
  for (std::size_t i = 0; i != at_once; ++i) those.push_back(run_some(all, count));
  co_await weft::when_all(std::move(those));
  co_return all.right;
}

weft::task<> serve(std::size_t at_once) {
  const auto at = weft::net::listener::adopt(bench::listening_socket);
  const weft::net::stream client = co_await at.accept();
  for (std::uint64_t count = 0; co_await client.read(std::as_writable_bytes(std::span{&count, 1})) == sizeof count;) {
    const std::uint64_t right = co_await run_all(count, at_once);
    co_await client.write(std::as_bytes(std::span{&right, 1}));
  }
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  return weft::run_main({.threads = static_cast<unsigned>(options.threads)}, serve(options.connections));
}
