#include <span>
#include <vector>
#include <weft/weft.hpp>

#include "reads.hpp"

namespace {

struct work {
  const bench::read_options& how;
  const weft::file& from;
  std::uint64_t count, next = 0, right = 0;
};

weft::task<> read_some(work& all) {
  weft::aligned_buffer buffer{all.how.bytes};
  while (all.next != all.count) {
    const std::uint64_t block = all.how.block_of(all.next++);
    const std::size_t size = co_await all.from.read_at(block * all.how.bytes, buffer);
    if (size == all.how.bytes && all.how.is_right(buffer.bytes().data(), block)) ++all.right;
  }
}

weft::task<std::uint64_t> read_all(const bench::read_options& how, const weft::file& from, std::uint64_t count) {
  work all{how, from, count};
  std::vector<weft::task<>> those;
  for (std::size_t i = 0; i != how.at_once; ++i) those.push_back(read_some(all));
  co_await weft::when_all(std::move(those));
  co_return all.right;
}

weft::task<> serve(const bench::read_options& how) {
  const weft::file from = co_await weft::file::open({.direct = how.direct}, how.path);
  const auto at = weft::net::listener::adopt(bench::listening_socket);
  const weft::net::stream client = co_await at.accept();
  for (std::uint64_t count = 0; co_await client.read(std::as_writable_bytes(std::span{&count, 1})) == sizeof count;) {
    const std::uint64_t right = co_await read_all(how, from, count);
    co_await client.write(std::as_bytes(std::span{&right, 1}));
  }
}

}  // namespace

int main(int count, char** words) {
  const bench::read_options how{count, words};
  return weft::run_main({.threads = 1}, serve(how));
}
