// Random datagrams through Unix sockets, with descriptors or without, into random buffers, by each of the ways to receive, beside
// a list of what was sent: nothing is lost, comes twice or is longer than its buffer, and no descriptor is left.
#include <weft/unix.hpp>

#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/datagram.hpp>
#include <weft/task.hpp>

#include "support/fuzz.hpp"

namespace {

using test::must;
using weft::net::datagram;
using weft::net::incoming;
using weft::net::outgoing;

std::size_t open_descriptors() {
  DIR* const all = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

struct sent {
  std::string bytes;
  std::size_t descriptors = 0;
};

class passing {
 public:
  explicit passing(test::choices& chosen) : chosen_{chosen} {
    int both[2];
    must(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, both) == 0, "there are no sockets");
    here_ = datagram::adopt(both[0]);
    there_ = datagram::adopt(both[1]);
    open_ = open_descriptors();
  }

  weft::task<> run() {
    while (chosen_.are_left()) {
      if (on_their_way_.size() < 8 && !chosen_.one_in(3))
        co_await send();
      else if (!on_their_way_.empty())
        co_await receive();
      must(open_descriptors() == open_, "a descriptor is left");
    }
    while (!on_their_way_.empty()) co_await receive();
  }

 private:
  std::string some_bytes() {
    std::string bytes(chosen_.up_to(40), '\0');
    for (char& one : bytes) one = static_cast<char>(chosen_.up_to(255));
    return bytes;
  }

  weft::task<> send() {
    switch (chosen_.up_to(3)) {
      case 0: {
        sent one{.bytes = some_bytes()};
        co_await here_.send(one.bytes);
        on_their_way_.push_back(std::move(one));
        break;
      }
      case 1: {
        sent one{.bytes = some_bytes(), .descriptors = chosen_.up_to(5)};
        const std::vector<int> those(one.descriptors, here_.native_handle());
        co_await weft::net::send_descriptors(here_, those, std::as_bytes(std::span{one.bytes}));
        on_their_way_.push_back(std::move(one));
        break;
      }
      case 2: {
        std::array<std::string, 3> texts{some_bytes(), some_bytes(), some_bytes()};
        std::array<outgoing, 3> those{};
        for (std::size_t i = 0; i != those.size(); ++i) those[i].data = std::as_bytes(std::span{texts[i]});
        const std::size_t count = co_await here_.send_batch(those);
        must(count == those.size(), "there was room for all");
        for (std::string& one : texts) on_their_way_.push_back({.bytes = std::move(one)});
        break;
      }
      default: {
        const std::string bytes = some_bytes();
        const std::size_t segment = 1 + chosen_.up_to(15);
        const std::size_t size = co_await here_.send_segments(std::as_bytes(std::span{bytes}), segment);
        must(size == std::min(bytes.size(), 16 * segment), "there was room for 16");
        for (std::size_t at = 0; at < size; at += segment)
          on_their_way_.push_back({.bytes = bytes.substr(at, std::min(segment, size - at))});
      }
    }
  }

  void is_right(const weft::net::received& got, std::span<const std::byte> into, const sent& expected) const {
    must(got.full_size == expected.bytes.size(), "it has another size");
    must(got.size == std::min(into.size(), expected.bytes.size()), "it has another size in the buffer");
    must(got.is_truncated() == (expected.bytes.size() > into.size()), "it says nothing of what is lost");
    must(std::ranges::equal(into.first(got.size), std::as_bytes(std::span{expected.bytes}).first(got.size)),
         "it has other bytes");
    must(got.segment == 0, "it was merged");
  }

  weft::task<> receive() {
    std::array<std::byte, 32> memory;
    const std::span<std::byte> into{memory.data(), chosen_.up_to(32)};
    switch (chosen_.up_to(3)) {
      case 0: {
        const weft::net::received got = co_await there_.receive(into);
        is_right(got, into, next());
        break;
      }
      case 1: {
        const weft::net::received_from got = co_await there_.receive_from(into);
        must(got.from.is_unix() && got.from.address().empty(), "its sender has a name");
        is_right(got, into, next());
        break;
      }
      case 2: {
        const std::size_t most = chosen_.up_to(6);
        const weft::net::with_descriptors got = co_await weft::net::receive_descriptors(there_, into, most);
        const sent expected = next();
        is_right(got, into, expected);
        must(got.descriptors.size() == std::min(most, expected.descriptors), "it has other descriptors");
        must(got.lost_descriptors == (expected.descriptors > most), "it says nothing of lost descriptors");
        break;
      }
      default: {
        std::array<incoming, 3> those;
        std::array<std::array<std::byte, 24>, 3> room;
        for (std::size_t i = 0; i != those.size(); ++i) those[i].into = std::span{room[i]}.first(chosen_.up_to(24));
        const std::size_t there = on_their_way_.size(), count = co_await there_.receive_batch(those);
        must(count == std::min(there, those.size()), "there were others");
        for (std::size_t i = 0; i != count; ++i) is_right(those[i], those[i].into, next());
      }
    }
  }
  sent next() {
    sent one = std::move(on_their_way_.front());
    on_their_way_.pop_front();
    return one;
  }

  test::choices& chosen_;
  datagram here_, there_;
  std::deque<sent> on_their_way_;
  std::size_t open_ = 0;
};

WEFT_FUZZ(datagram, 2'000, 200) {
  passing one{chosen};
  weft::sync_wait(one.run());
}

}  // namespace
