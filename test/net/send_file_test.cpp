// Files that are sent by stream::send_file(): in a run of the test kit, in runtimes on each back end, by fibers and on plain
// threads. Files are in memory (memfd_create), which the system treats as any other.
#include <weft/net.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/runtime.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>

#include "net/sockets.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::connected;
using test::connection;
using test::read_all;
using weft::as_result;
using weft::task;

class file {
 public:
  explicit file(std::string_view text) : number_{::memfd_create("sent", MFD_CLOEXEC)} {
    EXPECT_EQ(::write(number_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  explicit file(int number) : number_{number} { EXPECT_GE(number, 0); }
  file(const file&) = delete;
  ~file() { ::close(number_); }
  int number() const noexcept { return number_; }

 private:
  int number_;
};

std::string numbered(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i != size; ++i) text[i] = static_cast<char>(i * 31 >> 4);
  return text;
}

// What comes of so much of a file, on the other side.
task<std::string> passed(const connection& by, int number, std::uint64_t offset, std::uint64_t size,
                         std::uint64_t& sent) {
  const auto sends = [&]() -> task<> {
    sent = co_await by.here.send_file(number, offset, size);
    by.here.shutdown();
  };
  auto both = weft::when_all(sends(), read_all(by.there));
  auto [none, got] = co_await std::move(both);
  co_return std::move(got);
}

task<> sends_parts() {
  const std::string text = numbered(1'000'000);
  const file of{text};
  EXPECT_EQ(::lseek(of.number(), 77, SEEK_SET), 77);
  struct part {
    std::uint64_t offset, size;
  };
  for (const part each : {part{0, 1'000'000}, part{0, ~std::uint64_t{}}, part{1, 1}, part{999'999, 5},
                          part{123'456, 500'000}, part{500'000, 0}, part{1'000'000, 5}, part{2'000'000, 5}})
    for (const bool by_tcp : {false, true}) {
      connection by;
      if (by_tcp)
        by = co_await test::connected_by_tcp();
      else
        by = connected();
      std::uint64_t sent = 0;
      const std::string got = co_await passed(by, of.number(), each.offset, each.size, sent);
      EXPECT_EQ(got.size(), sent);
      const std::string expected = each.offset > text.size() ? "" : text.substr(each.offset, each.size);
      EXPECT_TRUE(got == expected) << each.offset << ", " << each.size;
    }
  EXPECT_EQ(::lseek(of.number(), 0, SEEK_CUR), 77) << "its own position has moved";
}

TEST(send_file, sends_what_is_asked_for) {
  weft::test::run(sends_parts);
  weft::sync_wait(sends_parts());
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) weft::runtime{{.threads = threads, .io = by}}.run(sends_parts());
}

TEST(send_file, works_in_a_fiber) {
  weft::test::run([]() -> task<> {
    const std::string text = numbered(300'000);
    const file of{text};
    const connection by = connected();
    auto body = [&](weft::scope& s) -> task<std::string> {
      auto sends = s.go([&] {
        const auto sent = weft::await(by.here.send_file(of.number()));
        EXPECT_EQ(sent, text.size());
        by.here.shutdown();
      });
      std::string got = co_await read_all(by.there);
      co_await std::move(sends);
      co_return got;
    };
    EXPECT_TRUE(co_await weft::with_scope(body) == text);
  });
}

// The count says that it has ended before.
TEST(send_file, ends_with_a_file_that_shrinks_meanwhile) {
  weft::test::run([]() -> task<> {
    const std::string text = numbered(4'000'000);
    const file of{text};
    const connection by = connected();
    std::uint64_t sent = 0;
    const auto sends = [&]() -> task<> {
      sent = co_await by.here.send_file(of.number(), 0, text.size());
      by.here.shutdown();
    };
    const auto gets = [&]() -> task<std::string> {
      co_await weft::sleep_for(1ms);  // all room is taken
      EXPECT_EQ(::ftruncate(of.number(), 1'000'000), 0);
      co_return co_await read_all(by.there);
    };
    auto both = weft::when_all(sends(), gets());
    const auto [none, got] = co_await std::move(both);
    EXPECT_EQ(sent, got.size());
    EXPECT_EQ(sent, 1'000'000U);
    EXPECT_TRUE(text.starts_with(got));
  });
}

TEST(send_file, refuses_what_has_no_positions) {
  weft::test::run([]() -> task<> {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const file from{ends[0]}, to{ends[1]};
    EXPECT_EQ(::write(to.number(), "x", 1), 1);
    const connection by = connected(), other = connected();
    EXPECT_EQ((co_await as_result(by.here.send_file(from.number()))).error(), std::errc::invalid_seek);
    EXPECT_EQ((co_await as_result(by.here.send_file(other.there.native_handle()))).error(), std::errc::invalid_seek);
    EXPECT_EQ((co_await as_result(by.here.send_file(-1))).error(), std::errc::bad_file_descriptor);
    const file folder{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    EXPECT_EQ((co_await as_result(by.here.send_file(folder.number()))).error(), std::errc::is_a_directory);
    const file unreadable{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
    EXPECT_EQ((co_await as_result(by.here.send_file(unreadable.number()))).error(), std::errc::bad_file_descriptor);
    co_await by.here.write("still open");  // none has had an effect
    by.here.shutdown();
    EXPECT_EQ(co_await read_all(by.there), "still open");
  });
}

// Of some file systems sendfile() can't send: it reads and writes then.
TEST(send_file, sends_what_the_system_cannot_send_by_itself) {
  weft::test::run([]() -> task<> {
    const file of{::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    const connection by = connected();
    std::uint64_t sent = 0;
    const std::string got = co_await passed(by, of.number(), 0, 100'000, sent);
    EXPECT_EQ(got.size(), sent);
    EXPECT_NE(got.find("r-xp"), std::string::npos);
  });
}

TEST(send_file, closes_its_side_where_it_is_stopped_half_way) {
  weft::test::run([]() -> task<> {
    const std::string text = numbered(4'000'000);
    const file of{text};
    const connection by = connected();
    const auto late = co_await as_result(weft::timeout(1s, by.here.send_file(of.number())));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    EXPECT_EQ((co_await as_result(by.here.write("x"))).error(), weft::errc::closed);
    const std::string got = co_await read_all(by.there);
    EXPECT_GT(got.size(), 0U);
    EXPECT_LT(got.size(), text.size());
    EXPECT_TRUE(text.starts_with(got));

    // One that is stopped before its first byte has had no effect.
    const connection full = connected();
    const std::string much(10'000, 'x');
    for (bool has_room = true; has_room;) {
      auto writing = as_result(weft::timeout(1ms, full.here.write_some(test::bytes(much))));
      has_room = (co_await std::move(writing)).has_value();
    }
    const auto never = co_await as_result(weft::timeout(1s, full.here.send_file(of.number())));
    EXPECT_EQ(never.error(), weft::errc::timed_out);
    std::vector<std::byte> room(1'000'000);  // all that is there
    EXPECT_GT(co_await full.there.read(room), 0U);
    EXPECT_GT(co_await full.here.write_some(test::bytes("y")), 0U);
  });
}

TEST(send_file, fails_with_closed) {
  weft::test::run([]() -> task<> {
    const file of{numbered(4'000'000)};
    connection by = connected();
    const auto closes = [&]() -> task<> {
      co_await weft::sleep_for(1ms);
      by.here.close();
    };
    auto both = weft::when_all(as_result(by.here.send_file(of.number())), closes());
    const auto [how, none] = co_await std::move(both);
    EXPECT_EQ(how.error(), weft::errc::closed);
    EXPECT_EQ((co_await as_result(by.here.send_file(of.number()))).error(), weft::errc::closed);
    EXPECT_EQ((co_await as_result(weft::net::stream{}.send_file(of.number()))).error(), weft::errc::closed);
  });
}

// A thread that has SIGPIPE neither blocked nor ignored gets none.
TEST(send_file, raises_no_sigpipe) {
  struct sigaction before{}, fatal{};
  fatal.sa_handler = [](int) { std::abort(); };
  ASSERT_EQ(::sigaction(SIGPIPE, &fatal, &before), 0);
  std::thread{[] {
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGPIPE);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    const file of{numbered(1000)};
    connection by = connected();
    by.there = {};
    for (int i = 0; i != 3; ++i)
      EXPECT_EQ(weft::sync_wait(as_result(by.here.send_file(of.number()))).error(), weft::errc::closed);
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    EXPECT_EQ(::sigismember(&now, SIGPIPE), 0);
  }}.join();
  ::sigaction(SIGPIPE, &before, nullptr);
}

TEST(send_file_death, beside_a_write) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::test::run([]() -> task<> {
                 const file of{numbered(4'000'000)};
                 const connection by = connected();
                 co_await weft::when_all(by.here.send_file(of.number()), by.here.write("x"));
               }),
               "two tasks write to one stream at once");
}

}  // namespace
