// What operations on sockets come to when system calls fail: each call of each operation, with each error that the system may
// give there. Every outcome is the right value or that error; no byte is lost or comes twice, nothing hangs, no descriptor is
// left, and what can be used again is. In a run of the test kit and in runtimes on each back end, by tasks and by fibers.
//
// Long because each operation is a scenario.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/io.hpp>
#include <weft/net.hpp>
#include <weft/race.hpp>
#include <weft/resolve.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/serve.hpp>

#include "net/fault_sweep.hpp"
#include "net/faults.hpp"
#include "net/name_server.hpp"
#include "net/open_descriptors.hpp"
#include "support/sweep.hpp"
#include "support/system_calls.hpp"

namespace {

using namespace test::in_sweeps;
using test::again;
using test::again_or_not;
using test::anywhere;
using test::breathe;
using test::call;
using test::connected_to;
using test::failure_of;
using test::fault;
using test::open_descriptors;
using test::own_listener;
using test::own_socket;
using test::place;
using test::runner;
using test::scenario;
using test::sweep_faults;
using weft::net::endpoint;
using weft::net::listener;
using weft::net::stream;

class net_faults : public testing::TestWithParam<place> {};
INSTANTIATE_TEST_SUITE_P(on, net_faults, testing::ValuesIn(test::places()), test::name_of_place);

// ---- scenarios --------------------------------------------------------------------------------------------------------------

// By TCP, of which `there` is the test's own.
struct by_tcp : scenario {
  own_listener at;
  own_socket there = connected_to(at.port);
  stream here = stream::adopt(test::real::__real_accept4(at.number(), nullptr, nullptr, SOCK_CLOEXEC));
  std::string received;

  by_tcp() { spared = {there.number()}; }
};

constexpr std::string_view letters = "abcdefghij";

// Piece by piece, each when all before it was received: so no later change has a read go on that has missed one.
template <class By>
struct sends_letters : by_tcp {
  weft::event has_come;
  std::atomic<std::size_t> sent{0};  // before it is

  part<By> sends() {
    for (const std::string_view piece : {"ab", "cde", "f", "ghij"}) {
      sent += piece.size();
      there.send(piece);
      co_await has_come.wait();
      has_come.reset();
      co_await breathe();
    }
    there.end();
  }
  void comes(std::string_view text) {
    this->received += text;
    if (this->received.size() == sent) has_come.set();
  }
  void check(std::error_code failed) const {
    by_tcp::check(failed);
    EXPECT_EQ(received, letters);
  }
};

template <class By>
struct reads : sends_letters<By> {
  static constexpr std::array those{call::recv};
  part<By> gets() {
    std::array<std::byte, 2> buffer;
    const auto read = [&] { return this->here.read(buffer); };
    for (;;) {
      const std::size_t got = co_await again<By>(*this, read);
      if (got == 0) break;
      this->comes({reinterpret_cast<const char*>(buffer.data()), got});
    }
  }
  part<By> run() { co_await together(this->sends(), gets()); }
};

// Into parts, of which some are empty.
template <class By>
struct reads_into_parts : sends_letters<By> {
  static constexpr std::array those{call::recvmsg};
  part<By> gets() {
    std::array<std::byte, 3> buffer;
    const std::span<std::byte> all{buffer};
    const std::array<std::span<std::byte>, 4> parts{all.first(0), all.first(2), all.first(0), all.subspan(2)};
    const auto read = [&] { return this->here.read(parts); };
    for (;;) {
      const std::size_t got = co_await again<By>(*this, read);
      if (got == 0) break;
      this->comes({reinterpret_cast<const char*>(buffer.data()), got});
    }
  }
  part<By> run() { co_await together(this->sends(), gets()); }
};

template <class By>
struct receives : sends_letters<By> {
  static constexpr std::array those{call::recv};
  part<By> gets() {
    const auto receive = [&] { return this->here.receive(); };
    for (;;) {
      const weft::net::lent_buffer got = co_await again<By>(*this, receive);
      if (got.empty()) break;
      this->comes(got.text());
    }
  }
  part<By> run() { co_await together(this->sends(), gets()); }
};

template <class By>
struct reads_as_case : sends_letters<By> {
  static constexpr std::array those{call::recv};
  task<std::size_t> chosen(std::span<std::byte> into) {
    const auto got = co_await weft::select(weft::on(this->here.read(into)), weft::after(1h));
    EXPECT_EQ(got.index, 0U);
    co_return std::get<0>(got.value);
  }
  part<By> gets() {
    std::array<std::byte, 2> buffer;
    const auto read = [&] { return chosen(buffer); };
    for (;;) {
      const std::size_t got = co_await again<By>(*this, read);
      if (got == 0) break;
      this->comes({reinterpret_cast<const char*>(buffer.data()), got});
    }
  }
  part<By> run() { co_await together(this->sends(), gets()); }
};

template <class By>
struct reads_through_a_buffer : by_tcp {
  static constexpr std::array those{call::recv};
  weft::io::buffered_reader<const stream&> lines{here, 4};
  std::vector<std::string> found;

  part<By> sends() {
    for (const std::string_view piece : {"one\nt", "wo", "\n\nfour"}) {
      there.send(piece);
      co_await breathe();
    }
    there.end();
  }
  part<By> gets() {
    const auto next = [&] { return lines.read_line(); };
    for (;;) {
      const std::optional<std::string> line = co_await again<By>(*this, next);
      if (!line) break;
      found.push_back(*line);
    }
  }
  part<By> run() { co_await together(sends(), gets()); }
  void check(std::error_code failed) const {
    by_tcp::check(failed);
    EXPECT_EQ(found, (std::vector<std::string>{"one", "two", "", "four"}));
  }
};

// Of whatever fails in the middle, a copy can be gone on with.
template <class By>
struct copies : sends_letters<By> {
  static constexpr std::array those{call::recv};
  weft::io::pipe_ends ends = weft::io::pipe(64);

  part<By> copies_all() {
    const auto copy = [&] { return weft::io::copy(this->here, ends.to); };
    co_await again<By>(*this, copy);
    ends.to.close();
  }
  part<By> gets() {
    std::array<std::byte, 64> buffer;
    for (;;) {
      const std::size_t got = co_await ends.from.read(buffer);
      if (got == 0) break;
      this->comes({reinterpret_cast<const char*>(buffer.data()), got});
    }
  }
  part<By> run() { co_await together(this->sends(), copies_all(), gets()); }
};

// By a local socket with little room, which the other side reads to its end.
struct with_little_room : scenario {
  std::array<int, 2> both = [] {
    std::array<int, 2> made;
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made.data()), 0);
    return made;
  }();
  stream here = stream::adopt(both[0]), there = stream::adopt(both[1]);
  std::string sent, received;

  with_little_room() {
    spared = {both[1]};
    here.set_send_buffer(4096);
    sent.resize(20'000);
    for (std::size_t i = 0; i != sent.size(); ++i) sent[i] = static_cast<char>(i * 31 >> 4);
  }
};

template <class By>
struct gets_all : with_little_room {
  part<By> gets() {
    co_await breathe();
    std::array<std::byte, 3000> buffer;
    for (;;) {
      const std::size_t got = co_await there.read(buffer);
      if (got == 0) break;
      received.append(reinterpret_cast<const char*>(buffer.data()), got);
    }
  }
};

template <class By>
struct writes_some : gets_all<By> {
  static constexpr std::array those{call::send};
  part<By> puts() {
    std::span<const std::byte> left = std::as_bytes(std::span{this->sent});
    const auto write = [&] { return this->here.write_some(left); };
    while (!left.empty()) {
      const std::size_t written = co_await again<By>(*this, write);
      EXPECT_GT(written, 0U);
      left = left.subspan(written);
    }
    this->here.shutdown();
  }
  part<By> run() { co_await together(puts(), this->gets()); }
  void check(std::error_code failed) const {
    gets_all<By>::check(failed);
    EXPECT_TRUE(this->received == this->sent);
  }
};

template <class By>
struct writes_some_parts : writes_some<By> {
  static constexpr std::array those{call::sendmsg};
  part<By> puts() {
    std::span<const std::byte> left = std::as_bytes(std::span{this->sent});
    std::array<std::span<const std::byte>, 4> parts;
    const auto write = [&] { return this->here.write_some(parts); };
    while (!left.empty()) {
      parts = {left.first(0), left.first(1), left.first(0), left.subspan(1)};
      const std::size_t written = co_await again<By>(*this, write);
      EXPECT_GT(written, 0U);
      left = left.subspan(written);
    }
    this->here.shutdown();
  }
  part<By> run() { co_await together(puts(), this->gets()); }
};

// One that fails behind its first byte has closed its side: it can't be done again, and the peer has a part, and the end.
template <class By>
struct writes_all_of_it : gets_all<By> {
  bool was_written = false;
  void check(std::error_code failed) const {
    if (was_written) {
      gets_all<By>::check(failed);
      EXPECT_TRUE(this->received == this->sent);
    } else {
      EXPECT_EQ(this->failures, (std::vector<std::error_code>{failed, weft::errc::closed}));
      EXPECT_GT(this->received.size(), 0U);
      EXPECT_LT(this->received.size(), this->sent.size());
      EXPECT_TRUE(this->sent.starts_with(this->received));
    }
  }
};

template <class By>
struct writes : writes_all_of_it<By> {
  static constexpr std::array those{call::send};
  part<By> puts() {
    const auto write = [&] { return this->here.write(this->sent); };
    this->was_written = co_await again_or_not<By>(*this, write);
    if (this->was_written) this->here.shutdown();
  }
  part<By> run() { co_await together(puts(), this->gets()); }
};

template <class By>
struct writes_parts : writes_all_of_it<By> {
  static constexpr std::array those{call::sendmsg};
  std::array<std::span<const std::byte>, 5> parts;
  part<By> puts() {
    const auto write = [&] {
      const std::span<const std::byte> all = std::as_bytes(std::span{this->sent});
      parts = {all.first(1), {}, all.subspan(1, 6000), all.subspan(6001, 13'990), all.subspan(19'991)};
      return this->here.write(parts);
    };
    this->was_written = co_await again_or_not<By>(*this, write);
    if (this->was_written) this->here.shutdown();
  }
  part<By> run() { co_await together(puts(), this->gets()); }
};

// By sendfile, and where the system can't, by reads and writes.
template <class By>
struct sends_a_file : writes_all_of_it<By> {
  static constexpr std::array those{call::sendfile};
  const own_socket file = [this] {
    own_socket made{::memfd_create("sent", MFD_CLOEXEC)};
    EXPECT_EQ(::write(made.number(), this->sent.data(), this->sent.size()), static_cast<ssize_t>(this->sent.size()));
    return made;
  }();
  part<By> puts() {
    const auto send = [&]() -> task<> {
      const std::uint64_t size = co_await this->here.send_file(file.number(), 0, this->sent.size());
      EXPECT_EQ(size, this->sent.size());
    };
    this->was_written = co_await again_or_not<By>(*this, send);
    if (this->was_written) this->here.shutdown();
  }
  part<By> run() { co_await together(puts(), this->gets()); }
};
// From a file that sendfile refuses: the program's own memory, below 2 GiB, where that is all that lacks.
template <class By>
struct sends_a_file_by_copies : writes_all_of_it<By> {
  static constexpr std::array those{call::pread, call::send};
  const own_socket memory{::open("/proc/self/mem", O_RDONLY | O_CLOEXEC)};
  void* const low =
      ::mmap(nullptr, this->sent.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  sends_a_file_by_copies() { std::memcpy(low, this->sent.data(), this->sent.size()); }
  ~sends_a_file_by_copies() { ::munmap(low, this->sent.size()); }
  part<By> puts() {
    const auto send = [&]() -> task<> {
      const auto from = reinterpret_cast<std::uintptr_t>(low);
      const std::uint64_t size = co_await this->here.send_file(memory.number(), from, this->sent.size());
      EXPECT_EQ(size, this->sent.size());
    };
    this->was_written = co_await again_or_not<By>(*this, send);
    if (this->was_written) this->here.shutdown();
  }
  part<By> run() { co_await together(puts(), this->gets()); }
};

// Over TCP. One that fails behind its first byte resets the connection.
template <class By>
struct writes_without_a_copy : by_tcp {
  static constexpr std::array those{call::lend};
  stream other = [this] {
    stream made = stream::adopt(::fcntl(there.number(), F_DUPFD_CLOEXEC, 0));
    spared.push_back(made.native_handle());
    return made;
  }();
  std::string sent = std::string(200'000, 'x');
  bool was_written = false, was_reset = false;

  part<By> puts() {
    const auto write = [&] { return here.write_zero_copy(std::as_bytes(std::span{sent})); };
    was_written = co_await again_or_not<By>(*this, write);
    if (was_written) here.shutdown();
  }
  part<By> gets() {
    std::array<std::byte, 3000> buffer;
    for (;;) {
      const auto got = co_await as_result(other.read(buffer));
      was_reset = !got.has_value();
      if (was_reset || *got == 0) break;
      received.append(reinterpret_cast<const char*>(buffer.data()), *got);
    }
  }
  part<By> run() { co_await together(puts(), gets()); }
  void check(std::error_code failed) const {
    if (was_written) {
      by_tcp::check(failed);
      EXPECT_TRUE(received == sent);
    } else {
      EXPECT_EQ(failures, (std::vector<std::error_code>{failed, weft::errc::closed}));
      EXPECT_LT(received.size(), sent.size());
      EXPECT_TRUE(sent.starts_with(received));
    }
  }
};

// A connection that can't be watched is closed; any other stays to be accepted.
template <class By>
struct accepts : scenario {
  static constexpr std::array those{call::accept4, call::epoll_ctl};
  std::optional<listener> at;
  std::vector<own_socket> clients;
  std::string order;
  std::atomic<bool> is_over{false};

  // One more where a change was promised and another one can't be forced.
  part<By> connects() {
    for (int i = 0; i != 12 && !is_over; ++i) {
      clients.push_back(connected_to(at->local().port()));
      clients.back().send(letters.substr(static_cast<std::size_t>(i % 10), 1));
      co_await breathe();
    }
  }
  part<By> gets() {
    const auto accept = [&] { return at->accept(); };
    for (int i = 0; i != 3; ++i) {
      const stream one = co_await again<By>(*this, accept);
      std::array<std::byte, 1> letter{};
      co_await one.read(letter);
      order += static_cast<char>(letter[0]);
    }
    is_over = true;
  }
  part<By> run() {
    const auto listen = [] { return weft::net::listen(anywhere); };
    at.emplace(co_await again<By>(*this, listen));
    co_await together(gets(), connects());
  }
  void check(std::error_code failed) const {
    scenario::check(failed);
    EXPECT_EQ(order.size(), 3U);
    EXPECT_TRUE(std::ranges::is_sorted(order, std::ranges::less_equal{}));
    if (failed != std::errc::no_space_on_device && failed != std::errc::not_enough_memory) {
      EXPECT_EQ(order, "abc");
    }
  }
};

template <class By>
struct connects : scenario {
  static constexpr std::array those{call::socket, call::connect, call::epoll_ctl};
  own_listener at;
  std::string there, here;

  part<By> run() {
    const auto connect = [&] { return weft::net::connect(endpoint{"127.0.0.1", at.port}); };
    const stream made = co_await again<By>(*this, connect);
    for (;;) {  // before it one that failed
      const own_socket peer = at.accept();
      sockaddr_in of{};
      socklen_t size = sizeof of;
      EXPECT_EQ(::getpeername(peer.number(), reinterpret_cast<sockaddr*>(&of), &size), 0);
      if (ntohs(of.sin_port) != made.local().port()) continue;
      co_await made.write("to it");
      there = peer.receive();
      peer.send("back");
      std::array<std::byte, 8> buffer;
      const std::size_t got = co_await made.read(buffer);
      here.assign(reinterpret_cast<const char*>(buffer.data()), got);
      break;
    }
  }
  void check(std::error_code failed) const {
    scenario::check(failed);
    EXPECT_EQ(there, "to it");
    EXPECT_EQ(here, "back");
  }
};

template <class By>
struct listens_thrice : scenario {
  static constexpr std::array those{call::socket, call::bind, call::listen, call::epoll_ctl};
  part<By> run() {
    const auto listen = [] { return weft::net::listen_many({}, anywhere, 3); };
    const std::vector<listener> made = co_await again<By>(*this, listen);
    const own_socket client = connected_to(made.back().local().port());  // which says whether it is taken
  }
};

template <class By>
struct listens : scenario {
  static constexpr std::array those{call::socket, call::bind, call::listen, call::epoll_ctl};
  part<By> run() {
    const auto listen = [] { return weft::net::listen(anywhere); };
    const listener made = co_await again<By>(*this, listen);
    const own_socket client = connected_to(made.local().port());  // which says whether it is taken
  }
};

template <class By>
struct waits_until_ready : scenario {
  static constexpr std::array those{call::poll, call::fcntl, call::epoll_ctl};
  own_socket other{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  part<By> waits() {
    using weft::net::readiness;
    const auto until = [&] { return weft::net::ready(other.number(), readiness::readable); };
    for (int i = 0; i != 2; ++i) EXPECT_EQ(co_await again<By>(*this, until), readiness::readable);
  }
  part<By> sets() {
    co_await breathe();
    EXPECT_EQ(::eventfd_write(other.number(), 1), 0);
  }
  part<By> run() { co_await together(waits(), sets()); }
};

template <class By>
struct shuts_down : by_tcp {
  static constexpr std::array those{call::shutdown};
  part<By> run() {
    const auto shut = [&]() -> task<bool> {
      here.shutdown();
      co_return true;
    };
    co_await again<By>(*this, shut);
    received = there.receive();
    there.send("still");
    std::array<std::byte, 8> buffer;
    EXPECT_EQ(co_await here.read(buffer), 5U);
    const auto late = co_await as_result(here.write("x"));
    EXPECT_EQ(late.error(), weft::errc::closed);
  }
  void check(std::error_code failed) const {
    by_tcp::check(failed);
    EXPECT_EQ(received, "");
  }
};

// What can't be taken over is the caller's still.
template <class By>
struct adopts : scenario {
  static constexpr std::array those{call::fcntl, call::epoll_ctl};
  own_listener at;

  part<By> run() {
    const own_socket there = connected_to(at.port);
    const int number = test::real::__real_accept4(at.number(), nullptr, nullptr, SOCK_CLOEXEC);
    const auto adopt = [&]() -> task<stream> {
      struct stat its;
      EXPECT_EQ(::fstat(number, &its), 0);
      co_return stream::adopt(number);
    };
    const stream here = co_await again<By>(*this, adopt);
    there.send("x");
    std::array<std::byte, 8> buffer;
    EXPECT_EQ(co_await here.read(buffer), 1U);
  }
};

// A lookup has other servers to ask, or the same one again: so a call that fails may have it fail, or not.
template <class By>
struct looks_up : scenario {
  static constexpr std::array those{call::socket, call::connect, call::sendmsg, call::recvfrom, call::epoll_ctl};
  test::name_server server{[](const test::question& asked) {
    return asked.by_tcp || asked.type == test::aaaa_record
               ? test::answer(asked, {"10.0.0.7", "::1"})
               : test::answer(asked, {}, {.is_truncated = true});  // and once more by TCP
  }};
  std::vector<endpoint> found;

  part<By> run() {
    const endpoint at[] = {server.at()};
    const weft::net::resolve_options options{.servers = at, .timeout = 20ms, .tries = 10};
    const auto resolve = [&] { return weft::net::resolve(options, "db.test.", "80"); };
    found = co_await again<By>(*this, resolve);
  }
  void check(std::error_code failed) const {
    if (!failures.empty()) scenario::check(failed);
    // Of one family alone where the question for the other one could not be asked.
    EXPECT_FALSE(found.empty());
    for (const endpoint& one : found) EXPECT_TRUE(one == endpoint("10.0.0.7", 80) || one == endpoint("::1", 80));
  }
};

// One that refuses before one that does not: so there is one attempt more, whatever fails.
template <class By>
struct connects_to_several : scenario {
  static constexpr std::array those{call::socket, call::connect, call::epoll_ctl};
  own_listener at;
  std::string there;

  part<By> run() {
    const std::vector<endpoint> all{endpoint{"127.0.0.1", at.port}, endpoint{"127.0.0.1", at.port}};
    const auto connect = [&] { return weft::net::connect({.delay = 1h}, all); };
    const stream made = co_await again<By>(*this, connect);
    co_await made.write("to it");
    for (;;) {  // before it one that failed
      const own_socket peer = at.accept();
      there = peer.receive();
      if (!there.empty()) break;
    }
  }
  void check(std::error_code failed) const {
    EXPECT_EQ(failures, std::vector<std::error_code>{}) << failed.message();
    EXPECT_EQ(there, "to it");
  }
};

// ---- the sweep ----------------------------------------------------------------------------------------------------------------

TEST_P(net_faults, of_read) { sweep_faults<reads>(GetParam()); }
TEST_P(net_faults, of_a_read_into_parts) { sweep_faults<reads_into_parts>(GetParam()); }
TEST_P(net_faults, of_receive) { sweep_faults<receives>(GetParam()); }
TEST_P(net_faults, of_a_read_as_a_case) { sweep_faults<reads_as_case>(GetParam()); }
TEST_P(net_faults, of_a_buffered_reader) { sweep_faults<reads_through_a_buffer>(GetParam()); }
TEST_P(net_faults, of_copy) { sweep_faults<copies>(GetParam()); }
TEST_P(net_faults, of_write_some) { sweep_faults<writes_some>(GetParam()); }
TEST_P(net_faults, of_write_some_parts) { sweep_faults<writes_some_parts>(GetParam()); }
TEST_P(net_faults, of_write) { sweep_faults<writes>(GetParam()); }
TEST_P(net_faults, of_a_write_of_parts) { sweep_faults<writes_parts>(GetParam()); }
TEST_P(net_faults, of_send_file) { sweep_faults<sends_a_file>(GetParam()); }
TEST_P(net_faults, of_write_zero_copy) { sweep_faults<writes_without_a_copy>(GetParam()); }
TEST_P(net_faults, of_send_file_by_copies) { sweep_faults<sends_a_file_by_copies>(GetParam()); }
TEST_P(net_faults, of_accept) { sweep_faults<accepts>(GetParam()); }
TEST_P(net_faults, of_connect) { sweep_faults<connects>(GetParam()); }
TEST_P(net_faults, of_a_connect_to_several) { sweep_faults<connects_to_several>(GetParam()); }
TEST_P(net_faults, of_resolve) {
#if defined(WEFT_WITH_CARES)
  sweep_faults<looks_up>(GetParam());
#else
  GTEST_SKIP() << "weft was built without c-ares";
#endif
}
TEST_P(net_faults, of_listen) { sweep_faults<listens>(GetParam()); }
TEST_P(net_faults, of_listen_many) { sweep_faults<listens_thrice>(GetParam()); }
TEST_P(net_faults, of_ready) { sweep_faults<waits_until_ready>(GetParam()); }
TEST_P(net_faults, of_shutdown) { sweep_faults<shuts_down>(GetParam()); }
TEST_P(net_faults, of_adopt) { sweep_faults<adopts>(GetParam()); }

// An accept that first found nothing, and then no number, has left the connection, of which nobody tells once more.
TEST_P(net_faults, of_an_accept_of_what_was_reported_before) {
  runner run{GetParam()};
  const auto body = []() -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const own_socket first = connected_to(at.local().port()), second = connected_to(at.local().port());
    EXPECT_TRUE((co_await at.accept()).is_open());
    co_await weft::sleep_for(1ms);  // all is reported
    const test::injection fails{{call::accept4, {EAGAIN, EMFILE}}, 0};
    EXPECT_EQ((co_await as_result(at.accept())).error(), std::errc::too_many_files_open);
    EXPECT_TRUE((co_await at.accept()).is_open());
  };
  run(body);
}

// A read that found something calls the system no more before there is a change: what is plain is not taken for urgent.
TEST_P(net_faults, a_read_tries_once_for_each_change) {
  static constexpr std::size_t rounds = 4;
  runner run{GetParam()};
  const auto body = []() -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const own_socket peer = connected_to(at.local().port());
    const stream there = co_await at.accept();
    const test::injection counts{{call::recv, {0, 0, 0, 0, 0, 0, 0, 0}}, 0};
    std::array<std::byte, 64> buffer;
    const auto asks = [](const own_socket& from) -> task<> {
      co_await weft::sleep_for(1ms);  // the read waits
      from.send("asks");
    };
    for (std::size_t i = 0; i != rounds; ++i) {
      const auto [got, sent] = co_await weft::when_all(there.read(buffer), asks(peer));
      EXPECT_EQ(got, 4U);
    }
    EXPECT_GE(counts.struck(), rounds);
    EXPECT_LE(counts.struck(), rounds + 2);  // before the first one there is nothing
  };
  run(body);
}

// A file may have nothing yet, as one of the kernel's log: nobody tells when it has, so that is an error, and no wait.
TEST_P(net_faults, of_a_file_that_has_nothing_yet) {
  runner run{GetParam()};
  const auto body = []() -> task<> {
    const own_socket file{::memfd_create("sent", MFD_CLOEXEC)};
    EXPECT_EQ(::write(file.number(), "sent", 4), 4);
    const std::error_code nothing_yet{EAGAIN, std::generic_category()};
    {
      by_tcp one;
      const test::injection fails{{call::sendfile, {EAGAIN, EAGAIN, EAGAIN}}, 0};
      EXPECT_EQ((co_await as_result(one.here.send_file(file.number()))).error(), nothing_yet);
      EXPECT_EQ(co_await one.here.send_file(file.number()), 4U) << "it has had no effect";
    }
    const own_socket copied{::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    by_tcp one;
    const test::injection fails{{call::pread, {EAGAIN}}, 0};
    EXPECT_EQ((co_await as_result(one.here.send_file(copied.number()))).error(), nothing_yet);
    EXPECT_EQ(co_await one.here.send_file(copied.number(), 0, 4), 4U);
  };
  run(body);
}

// A stop that comes with the last piece has come too late.
TEST_P(net_faults, of_a_stop_behind_a_file_that_is_sent) {
  runner run{GetParam()};
  const auto body = []() -> task<> {
    const own_socket file{::memfd_create("sent", MFD_CLOEXEC)};
    EXPECT_EQ(::write(file.number(), "sent", 4), 4);
    by_tcp one;
    std::uint64_t sent = 0;
    const auto sends = [&]() -> task<> { sent = co_await one.here.send_file(file.number(), 0, 4); };
    const auto inside = [&](weft::scope& s) -> task<> {
      const test::injection stops{{call::sendfile, {test::meanwhile}}, 0, [&] { s.request_stop(); }};
      co_await s.fork(sends());
    };
    auto all = as_result(weft::with_scope(inside));
    static_cast<void>(co_await std::move(all));
    EXPECT_EQ(sent, 4U);
    co_await one.here.write("still open");
  };
  run(body);
}

// A server pauses after each of them, and counts as lost only what it had accepted.
TEST(net_faults_of_serve, are_paused_after_and_counted) {
  const auto body = [](test::fault what, weft::net::server_stats& stats) -> task<> {
    listener at = co_await weft::net::listen(anywhere);
    const auto answers = [](stream peer) -> task<> { co_await peer.write("x"); };
    const own_socket first = connected_to(at.local().port()), second = connected_to(at.local().port());
    const test::injection fails{what, 0};
    auto server = weft::net::serve({.stats = &stats}, std::move(at), answers);
    co_await weft::when_any(std::move(server), weft::sleep_for(10s));
  };
  {
    weft::net::server_stats stats;
    weft::test::run([&] { return body({call::accept4, {EPERM, EMFILE, ENOMEM}}, stats); });
    EXPECT_EQ(stats.pauses(), 3U);
    EXPECT_EQ(stats.rejected(), 0U);
    EXPECT_EQ(stats.accepted(), 2U);
  }
  {
    weft::net::server_stats stats;
    weft::test::run([&] { return body({call::epoll_ctl, {ENOSPC}}, stats); });
    EXPECT_EQ(stats.pauses(), 1U);
    EXPECT_EQ(stats.rejected(), 1U);
    EXPECT_EQ(stats.accepted(), 1U);
  }
}

// Another thread closes between an operation's look whether it is closed and its call.
TEST_P(net_faults, of_what_is_closed_meanwhile) {
  runner run{GetParam()};
  const auto body = []() -> task<> {
    std::array<std::byte, 4> buffer;
    for (int i = 0; i != 4; ++i) {
      by_tcp one;
      const test::injection closing{{i < 3 ? call::recv : call::send, {test::meanwhile}}, 0, [&] { one.here.close(); }};
      std::error_code how;
      if (i == 0) how = (co_await as_result(one.here.read(buffer))).error();
      if (i == 1) how = (co_await as_result(one.here.receive())).error();
      if (i == 2) how = (co_await as_result(weft::select(weft::on(one.here.read(buffer)), weft::after(1h)))).error();
      if (i == 3) how = (co_await as_result(one.here.write("x"))).error();
      EXPECT_EQ(how, weft::errc::closed) << i;
    }
    listener at = co_await weft::net::listen(anywhere);
    const test::injection closing{{call::accept4, {test::meanwhile}}, 0, [&] { at.close(); }};
    EXPECT_EQ((co_await as_result(at.accept())).error(), weft::errc::closed);
  };
  run(body);
}

// ---- stops of what takes a while -----------------------------------------------------------------------------------------------

// It goes on, as it seems, for two waits.
template <class By>
struct connects_late {
  const own_listener at;
  const test::injection late{{call::connect, {EALREADY, EALREADY, EALREADY}}, 0};
  const std::size_t open = open_descriptors();
  std::optional<stream> made;

  part<By> run() {
    made.emplace(co_await weft::net::connect(endpoint{"127.0.0.1", at.port}));
    co_await made->write("x");
    require(late.struck() == 3, "it has not waited");
  }
  void check() {
    const bool is_connected = made.has_value();
    made.reset();
    require(open_descriptors() == open, "a descriptor is left");
    if (at.has_one()) {
      const own_socket peer = at.accept();
      const std::string got = peer.receive();
      require(got.empty() || is_connected, "there is a connection that nobody has");
    } else {
      require(!is_connected, "there is none");
    }
  }
};
TEST(sweep, connect) {
  weft::test::run([]() -> task<> { co_await weft::net::listen(anywhere); });  // what the kit waits by is made once
  sweep_both<connects_late>("net::connect");
}

// The first of two goes on, as it seems, until the second has begun; whichever is first, the other one is closed.
template <class By>
struct connects_to_several_late {
  const own_listener at;
  const test::injection late{{call::connect, {EALREADY, EALREADY, EALREADY, EALREADY, EALREADY}}, 0};
  const std::size_t open = open_descriptors();
  std::optional<stream> made;

  part<By> run() {
    const std::vector<endpoint> all(2, endpoint{"127.0.0.1", at.port});
    auto connecting = weft::net::connect({.delay = 0ms}, all);
    made.emplace(co_await std::move(connecting));
    co_await made->write("x");
  }
  void check() {
    const bool is_connected = made.has_value();
    made.reset();
    require(open_descriptors() == open, "a descriptor is left");
    bool has_written = false;
    while (at.has_one()) {
      const own_socket peer = at.accept();
      has_written = peer.receive() == "x" || has_written;
    }
    require(!has_written || is_connected, "there is a connection that nobody has");
  }
};
TEST(sweep, connect_to_several) {
  weft::test::run([]() -> task<> { co_await weft::net::listen(anywhere); });  // what the kit waits by is made once
  sweep_both<connects_to_several_late>("net::connect(endpoints)");
}

}  // namespace
