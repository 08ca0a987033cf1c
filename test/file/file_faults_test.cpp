// Files whose calls fail, or do less than they were asked for: on threads that may block, and in rings.
// Long because each fault strikes at each call, on every way that a call takes.
#include <weft/file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/combine.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/stop.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>
#include <weft/with.hpp>

#include "file/directories.hpp"
#include "net/open_descriptors.hpp"
#include "support/file_calls.hpp"
#include "support/weft_test.hpp"
#ifdef WEFT_WITH_URING
#include "io/small_runtime.hpp"
#endif

namespace {

using namespace std::chrono_literals;
using test::file_call;
using test::file_fault;
using test::file_injection;
using test::one_byte;
using test::own_directory;
using test::pattern;
using weft::as_result;
using weft::file;
using weft::io_backend;
using weft::task;

bool has_rings() {
  static const bool has = weft::runtime{{.threads = 1}}.backend() == io_backend::uring;
  return has;
}

const std::vector<file_fault> all_faults{
    {file_call::try_read, {EAGAIN}},
    {file_call::try_read, {one_byte, one_byte, EAGAIN}},
    {file_call::try_read, {EINTR, EINTR}},
    {file_call::try_read, {EOPNOTSUPP}},
    {file_call::try_read, {EIO}},
    {file_call::try_read, {one_byte, EIO}},
    {file_call::try_write, {EAGAIN}},
    {file_call::try_write, {one_byte, one_byte, EAGAIN}},
    {file_call::try_write, {EINTR, EINTR}},
    {file_call::try_write, {EOPNOTSUPP}},
    {file_call::try_write, {ENOSPC}},
    {file_call::read, {one_byte, one_byte}},
    {file_call::read, {EINTR}},
    {file_call::read, {EIO}},
    {file_call::read, {one_byte, EIO}},
    {file_call::read, {EBADF}},
    {file_call::write, {one_byte, one_byte}},
    {file_call::write, {EINTR}},
    {file_call::write, {ENOSPC}},
    {file_call::write, {one_byte, ENOSPC}},
    {file_call::write, {EIO}},
    {file_call::fsync, {EINTR}},
    {file_call::fsync, {EIO}},
    {file_call::fdatasync, {ENOSPC}},
    {file_call::fallocate, {EINTR}},
    {file_call::fallocate, {ENOSPC}},
    {file_call::ftruncate, {EIO}},
    {file_call::openat, {EINTR}},
    {file_call::openat, {EMFILE}},
    {file_call::openat, {EACCES}},
    {file_call::statx, {EIO}},
    {file_call::close, {EIO}},
    {file_call::close, {EINTR}},
    {file_call::lock, {EINTR}},
    {file_call::lock, {EAGAIN, EAGAIN, EACCES}},
    {file_call::lock, {ENOLCK}},
    {file_call::rename, {EIO}},
    {file_call::ring, {one_byte, one_byte}},
    {file_call::ring, {EINTR}},
    {file_call::ring, {EAGAIN}},
    {file_call::ring, {ECANCELED}},
    {file_call::ring, {EIO}},
    {file_call::ring, {one_byte, EIO}},
    {file_call::ring, {ENOSPC}},
    {file_call::ring, {EBADF}},
};

// Whether an operation goes on behind this one.
bool goes_on_behind(const file_fault& what, int result) {
  if (result == one_byte || result == EINTR) return true;
  switch (what.at) {
    case file_call::try_read:
    case file_call::try_write: return result == EAGAIN || result == EOPNOTSUPP;
    case file_call::lock: return result == EAGAIN || result == EACCES;
    case file_call::ring: return result == EAGAIN || result == ECANCELED;
    default: return false;
  }
}
std::error_code failure_of(const file_fault& what, std::size_t struck) {
  for (std::size_t i = 0; i != struck; ++i)
    if (!goes_on_behind(what, what.results[i])) return {what.results[i], std::generic_category()};
  return {};
}

task<> does_all(const own_directory* in) {
  const std::string text = pattern(30);
  file one = co_await file::open({.write = true, .create = true, .truncate = true}, in->at("a"));
  co_await one.write_at(0, text);
  co_await one.append("end");
  std::string got(40, '?');
  got.resize(co_await one.read_at(0, std::as_writable_bytes(std::span{got})));
  EXPECT_EQ(got, text + "end");
  std::string front(10, '?'), back(100, '?');
  const std::span<std::byte> parts[] = {std::as_writable_bytes(std::span{front}),
                                        std::as_writable_bytes(std::span{back})};
  EXPECT_EQ(co_await one.read_at(1, parts), 32U);
  EXPECT_EQ(front + back.substr(0, 22), (text + "end").substr(1));
  co_await one.sync();
  co_await one.sync_data();
  co_await one.allocate(0, 100);
  co_await one.truncate(20);
  EXPECT_EQ(co_await one.size(), 20U);
  {
    const weft::file_lock held = co_await one.lock();
  }
  co_await one.close();
  const std::string whole = co_await weft::read_file(in->at("a"));
  EXPECT_EQ(whole, text.substr(0, 20));
  co_await weft::replace_file(in->at("b"), text);
}

enum class place { kit, thread, epoll, uring, two_rings };
class faults : public testing::TestWithParam<place> {};

// Whether such a call is made there. What rings make, threads do not; but threads sync the directory of a file that was replaced,
// close it, and ask whether a file has a name when it is destroyed.
bool is_met(place where, file_call what) {
  const bool has_rings = where >= place::uring;
  switch (what) {
    case file_call::ring: return has_rings;
    case file_call::read:
    case file_call::write:
    case file_call::fdatasync:
    case file_call::fallocate:
    case file_call::openat: return !has_rings;
    default: return true;
  }
}

// All faults at all calls; in a run of the test kit, too.
TEST_P(faults, are_told_or_got_over) {
  const place where = GetParam();
  if ((where == place::uring || where == place::two_rings) && !has_rings()) GTEST_SKIP() << "no rings here";
  std::optional<weft::runtime> runtime;
  if (where >= place::epoll)
    runtime.emplace(weft::runtime_options{.threads = where == place::two_rings ? 2U : 1U,
                                          .io = where == place::epoll ? io_backend::epoll : io_backend::uring});
  const own_directory in{test::places_for_files().back()};
  std::vector<std::size_t> struck_by(all_faults.size());
  std::size_t closes_told = 0, stats_told = 0;
  for (const bool waits : {false, true})
    for (const file_fault& each : all_faults) {
      std::optional<test::nothing_at_once> not_at_once;
      if (waits) not_at_once.emplace();
      for (std::size_t before = 0;; ++before) {
        const std::size_t open = test::open_descriptors();
        std::optional<weft::result<void>> came;
        const auto body = [&]() -> task<> { came = co_await as_result(does_all(&in)); };
        std::optional<file_injection> injected{std::in_place, each, before};
        if (runtime)
          runtime->run(weft::timeout(60s, body()));
        else if (where == place::kit)
          weft::test::run({.io = io_backend::epoll, .patience = 60s}, body);
        else
          weft::sync_wait(body());
        const std::size_t struck = injected->struck();
        injected.reset();
        // What a destructor's close fails with is lost, and so is what the question fails with whether a file has a name.
        if ((each.at != file_call::close && each.at != file_call::statx) || came->error()) {
          EXPECT_EQ(came->error(), failure_of(each, struck)) << each.to_string() << ", behind " << before;
        }
        if (each.at == file_call::close && each.results[0] == EIO && came->error()) ++closes_told;
        if (each.at == file_call::statx && came->error()) ++stats_told;
        EXPECT_EQ(test::open_descriptors(), open) << each.to_string() << ", behind " << before;
        for (const auto& entry : std::filesystem::directory_iterator{in.path()})
          EXPECT_EQ(entry.path().filename().native().size(), 1U) << entry.path() << " was left";
        if (struck == 0) break;
        ++struck_by[static_cast<std::size_t>(&each - all_faults.data())];
      }
    }
  for (std::size_t i = 0; i != all_faults.size(); ++i)
    EXPECT_EQ(struck_by[i] != 0, is_met(where, all_faults[i].at)) << all_faults[i].to_string();
  EXPECT_NE(closes_told, 0U) << "of what was written";
  EXPECT_TRUE(stats_told != 0 || where >= place::uring) << "which rings make";
}
std::string name_of(const testing::TestParamInfo<place>& one) {
  constexpr const char* names[] = {"in_the_kit", "on_a_thread", "by_epoll", "by_a_ring", "by_two_rings"};
  return names[static_cast<std::size_t>(one.param)];
}
INSTANTIATE_TEST_SUITE_P(, faults,
                         testing::Values(place::kit, place::thread, place::epoll, place::uring, place::two_rings),
                         name_of);

// Any of its calls, while it is made, by the thread that makes it or by another one: a stop is obeyed there, or what was done is
// told; and nothing is left of it.
TEST_P(faults, and_stops_leave_nothing) {
  const place where = GetParam();
  if (where == place::kit) return;  // which has sweeps of its own
  if ((where == place::uring || where == place::two_rings) && !has_rings()) GTEST_SKIP() << "no rings here";
  std::optional<weft::runtime> runtime;
  if (where >= place::epoll)
    runtime.emplace(weft::runtime_options{.threads = where == place::two_rings ? 2U : 1U,
                                          .io = where == place::epoll ? io_backend::epoll : io_backend::uring});
  const own_directory in{test::places_for_files().back()};
  std::size_t stopped = 0, done = 0;
  const test::nothing_at_once not_at_once;
  for (const bool by_another : {false, true})
    for (int at = 1; at != static_cast<int>(file_call::submit); ++at)
      for (std::size_t before = 0;; ++before) {
        test::put(in.at("b"), "old");
        const std::size_t open = test::open_descriptors();
        weft::stop_source stops;
        const file_injection injected{{static_cast<file_call>(at), {test::meanwhile}}, before, [&] {
                                        if (by_another)
                                          std::thread{[&] { stops.request_stop(); }}.join();
                                        else
                                          stops.request_stop();
                                      }};
        std::optional<weft::result<void>> came;
        const auto body = [&]() -> task<> {
          auto all = [&]() -> task<> { co_await does_all(&in); };
          came = co_await as_result(weft::with_stop(stops.token(), all));
        };
        if (runtime)
          runtime->run(weft::timeout(60s, body()));
        else
          weft::sync_wait(body());
        EXPECT_FALSE(came->error()) << came->error().message();
        ++(came->is_stopped() ? stopped : done);
        while (weft::process_blocking_stats().abandoned != 0) std::this_thread::yield();  // opens
        EXPECT_EQ(test::open_descriptors(), open) << at << ", behind " << before;
        const std::string text = test::text_in(in.at("b"));
        EXPECT_TRUE(text == "old" || text == pattern(30)) << at << ", behind " << before;
        for (const auto& entry : std::filesystem::directory_iterator{in.path()})
          EXPECT_EQ(entry.path().filename().native().size(), 1U) << entry.path() << " was left";
        if (injected.struck() == 0) break;
      }
  EXPECT_GT(stopped, 20U);
  EXPECT_GT(done, 0U);
}

TEST(whole_files, that_are_too_large_are_not_read) {
  const own_directory in{test::places_for_files().back()};
  const test::nothing_at_once not_at_once;
  weft::sync_wait([&]() -> task<> {
    const std::string path = in.at("a"), text = pattern((std::size_t{9} << 20) + 1);  // more than is read at once
    co_await weft::write_file(path, text);
    const file_injection injected{{file_call::read, {EIO}}, 0};
    const auto refused = co_await as_result(weft::read_file(path, text.size() - 1));
    EXPECT_EQ(refused.error(), std::errc::file_too_large);
    EXPECT_EQ(injected.struck(), 0U);
    EXPECT_EQ((co_await as_result(weft::read_file(path))).error(), std::errc::io_error);
    const std::string whole = co_await weft::read_file(path, text.size());
    EXPECT_TRUE(whole == text);
  }());
}

// Where a file system can say that a write would have to wait, a try may do a part; others' appends would come between.
TEST_P(faults, an_append_is_not_tried_in_part) {
  const place where = GetParam();
  if (where == place::kit) return;
  if ((where == place::uring || where == place::two_rings) && !has_rings()) GTEST_SKIP() << "no rings here";
  const own_directory in{test::places_for_files().back()};
  const std::string text = pattern(std::size_t{3} << 20);
  const auto body = [&]() -> task<> {
    const file to = co_await file::open({.write = true, .create = true}, in.at("a"));
    const file_injection injected{{file_call::try_write, {one_byte, one_byte}}};
    co_await to.append(text);
    co_await to.append(text);
    EXPECT_EQ(injected.struck(), 0U);
  };
  if (where == place::thread)
    weft::sync_wait(body());
  else
    weft::runtime{{.threads = where == place::two_rings ? 2U : 1U,
                   .io = where == place::epoll ? io_backend::epoll : io_backend::uring}}
        .run(body());
  EXPECT_TRUE(test::text_in(in.at("a")) == text + text);
}

#ifdef WEFT_WITH_URING

task<> reads_often(const file* from, const std::string* text, unsigned which, std::size_t* stopped,
                   bool may_be_stopped) {
  std::string got(100, '?');
  for (unsigned i = 0; i != 20; ++i) {
    const std::size_t at = (which * 37 + i * 101) % (text->size() - got.size());
    auto reading = from->read_at(at, std::as_writable_bytes(std::span{got}));
    const auto came = co_await as_result(weft::timeout(may_be_stopped && i % 3 == 0 ? 0ms : 60s, std::move(reading)));
    if (came.has_value())
      EXPECT_TRUE(got == text->substr(at, got.size()));
    else if (came.error() == weft::errc::timed_out)
      ++*stopped;
    else
      ADD_FAILURE() << came.error().message();
  }
}

// Many more calls than a ring has submissions; then it can't hand them over, either.
TEST(rings, take_no_more_than_they_have_room_for) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  const own_directory in{test::places_for_files().back()};
  const std::string text = pattern(10'000);
  test::put(in.at("a"), text);
  const test::nothing_at_once not_at_once;
  for (const bool is_refused : {false, true})
    for (const bool may_be_stopped : {false, true}) {
      test::small_runtime rt{1, {.submissions = 2, .completions = 4}};
      const std::size_t handed = test::handed_to_rings();
      const file_injection injected{{file_call::submit, {EBUSY, EBUSY, EBUSY, EBUSY, EBUSY, EBUSY, EBUSY, EBUSY}},
                                    is_refused ? 0U : 1'000'000'000U};
      std::size_t stopped = 0;
      rt.run([&]() -> task<> {
        const file from = co_await file::open(in.at("a"));
        std::vector<task<>> all;
        for (unsigned i = 0; i != 32; ++i) all.push_back(reads_often(&from, &text, i, &stopped, may_be_stopped));
        auto together = weft::when_all(std::move(all));
        co_await std::move(together);
      }());
      EXPECT_GT(test::handed_to_rings(), handed);
      EXPECT_EQ(injected.struck() != 0, is_refused);
      if (!may_be_stopped) {
        EXPECT_EQ(stopped, 0U);
      }
    }
}

// Stopped before, while and behind it is done; by its own thread and by another one, which puts it into the ring's inbox.
TEST(rings, are_asked_to_cancel_what_is_stopped) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  const own_directory in{test::places_for_files().back()};
  const std::string text = pattern(10'000);
  test::put(in.at("a"), text);
  const test::nothing_at_once not_at_once;
  for (const unsigned threads : {1U, 2U}) {
    weft::runtime rt{{.threads = threads, .io = io_backend::uring}};
    rt.run([&]() -> task<> {
      const file from = co_await file::open(in.at("a"));
      for (int round = 0; round != test::rounds(300); ++round) {
        std::string got(100, '?');
        auto body = [&](weft::scope& s) -> task<> {
          for (int i = 0; i != 4; ++i)
            s.fork(
                [](const file* of, std::size_t at) -> task<> {
                  std::string mine(100, '?');
                  co_await of->read_at(at, std::as_writable_bytes(std::span{mine}));
                },
                &from, static_cast<std::size_t>(i) * 100);
          for (int i = 0; i != round % 5; ++i) co_await weft::yield();
          s.request_stop();
        };
        static_cast<void>(co_await as_result(weft::with_scope(body)));
      }
    }());
  }
}

// A pipe, of which a ring reads as of a file, has nothing: so the kernel has the memory until it is asked for it.
TEST(rings, give_memory_back_that_the_kernel_has) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  const test::nothing_at_once not_at_once;
  for (const unsigned threads : {1U, 2U}) {
    weft::runtime rt{{.threads = threads, .io = io_backend::uring}};
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    rt.run([&]() -> task<> {
      const file from = file::adopt(ends[0]), to = file::adopt(ends[1]);
      std::string got(4, '?');
      const auto reads = [&] { return from.read_at(0, std::as_writable_bytes(std::span{got})); };
      for (int i = 0; i != 20; ++i) {
        // By the clock's thread, and by the worker itself.
        EXPECT_EQ((co_await as_result(weft::timeout(1ms, reads()))).error(), weft::errc::timed_out);
        auto stops = [&](weft::scope& s) -> task<> {
          auto reading = s.fork(reads);
          co_await weft::sleep_for(std::chrono::microseconds{i * 50});
          s.request_stop();
          EXPECT_TRUE((co_await as_result(std::move(reading))).is_stopped());
        };
        co_await weft::with_scope(stops);
      }
      EXPECT_EQ(::write(to.native_handle(), "abcd", 4), 4);
      EXPECT_EQ(co_await reads(), 4U);
      EXPECT_EQ(got, "abcd") << "one that was stopped has taken something";
    }());
  }
}

TEST(rings, are_used_where_there_are_any) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  const own_directory in{test::places_for_files().back()};
  const std::size_t handed = test::handed_to_rings();
  weft::runtime{{.threads = 1, .io = io_backend::epoll}}.run(does_all(&in));
  EXPECT_EQ(test::handed_to_rings(), handed);
  weft::runtime{{.threads = 1, .io = io_backend::uring}}.run(does_all(&in));
  EXPECT_GT(test::handed_to_rings(), handed);
}

#endif

}  // namespace
