#include <algorithm>
#include <span>
#include <vector>
#include <weft/weft.hpp>

#include "writes.hpp"

namespace {

struct work {
  const bench::write_options& how;
  const weft::file& to;
  std::uint64_t count, next = 0, right = 0;
};

weft::task<> write_some(work& all) {
  weft::aligned_buffer piece{all.how.bytes};
  std::ranges::fill(piece.bytes(), std::byte{0});
  while (all.next != all.count) {
    const std::uint64_t one = all.next++;
    bench::fill(piece.bytes().data(), one);
    co_await all.to.write_at(all.how.block_of(one) * all.how.bytes, piece.bytes());
    if (all.how.syncs) co_await all.to.sync_data();
    ++all.right;
  }
}

weft::task<std::uint64_t> write_all(const bench::write_options& how, const weft::file& to, std::uint64_t count) {
  work all{how, to, count};
  std::vector<weft::task<>> those;
  for (std::size_t i = 0; i != how.at_once; ++i) those.push_back(write_some(all));
  co_await weft::when_all(std::move(those));
  co_return all.right;
}

weft::task<> serve(const bench::write_options& how) {
  const weft::file to = co_await weft::file::open({.read = false, .write = true}, how.path);
  const auto at = weft::net::listener::adopt(bench::listening_socket);
  const weft::net::stream client = co_await at.accept();
  for (std::uint64_t count = 0; co_await client.read(std::as_writable_bytes(std::span{&count, 1})) == sizeof count;) {
    const std::uint64_t right = co_await write_all(how, to, count);
    co_await client.write(std::as_bytes(std::span{&right, 1}));
  }
}

}  // namespace

int main(int count, char** words) {
  const bench::write_options how{count, words};
  return weft::run_main({.threads = 1}, serve(how));
}
