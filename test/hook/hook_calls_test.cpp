// Hooked calls while the C library's function below the hook runs, which the test watches or holds up. With WEFT_TEST_IN_RUNTIME
// as in hook_test.cpp.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/clock.hpp>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "hook/fortified.hpp"
#include "hook/hook_calls.hpp"
#include "hook/places.hpp"

namespace {

using namespace std::chrono_literals;
using test::below;
using test::failure;
using test::on_a_worker;
using test::run_at_once;
using test::run_hooked;
using test::told;
using weft::scope;
using weft::task;

constexpr auto pool = [] { return weft::process_blocking_stats(); };

struct both_ends {
  int at[2];
  explicit both_ends(bool by_sockets) {
    EXPECT_EQ(by_sockets ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, at) : ::pipe(at), 0);
  }
  both_ends(const both_ends&) = delete;
  ~both_ends() {
    for (const int one : at) ::close(one);
  }
};

// Of a file without a name.
struct plain_file {
  int number = ::memfd_create("weft-hook", MFD_CLOEXEC);
  plain_file() { EXPECT_GE(number, 0); }
  plain_file(const plain_file&) = delete;
  ~plain_file() { ::close(number); }
};

// ---- lookups ----------------------------------------------------------------------------------------------------------------

// While it lives, lookups wait until let_go(), as they do when no name server answers.
class held_lookups {
 public:
  void let_go() noexcept {
    may_end_ = true;
    may_end_.notify_all();
  }
  unsigned begun() const noexcept { return begun_; }
  ~held_lookups() {
    let_go();
    while (pool().busy != 0) std::this_thread::sleep_for(1ms);
  }

 private:
  std::atomic<unsigned> begun_{0};
  std::atomic<bool> may_end_{false};
  test::watch_below held_{below::getaddrinfo, [this] {
                            ++begun_;
                            may_end_.wait(false);
                          }};
};

failure look_up() {
  addrinfo* found = nullptr;
  errno = 0;
  const int result = ::getaddrinfo("localhost", nullptr, nullptr, &found);
  const failure all{result, errno};
  if (result == 0) ::freeaddrinfo(found);
  return all;
}

// `count` lookups at once, stopped when all have begun; as_stopped(ended) is then called until it gives true.
void stop_lookups(
    unsigned count, held_lookups& held, std::vector<failure>& ended,
    std::function<bool()> as_stopped = [] { return true; }) {
  const auto body = [&](scope& inside) -> task<> {
    for (unsigned i = 0; i != count; ++i) inside.fork(weft::hooked([&ended] { ended.push_back(look_up()); }));
    while (held.begun() != count) co_await weft::sleep_for(1ms);
    inside.request_stop();
    const auto until_it_is_so = [&]() -> task<> {
      while (!as_stopped()) co_await weft::sleep_for(1ms);
    };
    co_await weft::shielded(until_it_is_so());
  };
  const auto all = [&]() -> task<> { co_await weft::with_scope(body); };
  on_a_worker(all());
}

// It posts nothing to the executor that is gone by then.
TEST(hook_calls, a_stopped_lookup_may_outlive_its_runtime) {
  held_lookups held;
  std::vector<failure> ended;
  stop_lookups(3, held, ended);
  EXPECT_EQ(ended, (std::vector<failure>(3, {EAI_SYSTEM, ECANCELED})));
  EXPECT_EQ(pool().abandoned, 3U);
  held.let_go();
  while (pool().busy != 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(pool().abandoned, 0U);
}

TEST(hook_calls, no_more_lookups_are_abandoned_than_the_pool_allows) {
  constexpr unsigned most = weft::blocking_options{}.max_abandoned;
  held_lookups held;
  std::vector<failure> ended;
  stop_lookups(most + 1, held, ended, [&] {
    if (ended.size() < most) return false;
    EXPECT_EQ(ended.size(), most);
    EXPECT_EQ(pool().abandoned, most);
    held.let_go();
    return true;
  });
  ASSERT_EQ(ended.size(), most + 1);
  EXPECT_EQ(ended.back(), (failure{0, 0})) << "it was waited for, and gives what it has found";
  ended.pop_back();
  EXPECT_EQ(ended, (std::vector<failure>(most, {EAI_SYSTEM, ECANCELED})));
}

// ---- preadv2, pwritev2 ------------------------------------------------------------------------------------------------------

using with_flags = ssize_t (*)(int number, const iovec* parts, int count, off_t at, int flags);
struct both_ways {
  with_flags read, write;
};
constexpr both_ways of_flags[] = {{::preadv2, ::pwritev2}, {::preadv64v2, ::pwritev64v2}};
constexpr int for_disks[] = {0, RWF_HIPRI, RWF_DSYNC, RWF_SYNC | RWF_APPEND};

TEST(hook_calls, preadv2_without_a_position_waits_as_readv_does) {
  for (const both_ways& way : of_flags)
    for (const bool by_sockets : {true, false})
      for (const int flags : for_disks) {
        both_ends ends{by_sockets};
        char got[8] = {};
        const iovec parts[2] = {{got, 1}, {got + 1, sizeof got - 2}};
        bool is_over = false;
        run_at_once({[&] {
                       EXPECT_EQ(way.read(ends.at[0], parts, 2, -1, flags), 3);
                       is_over = true;
                     },
                     [&] {
                       EXPECT_FALSE(is_over);
                       EXPECT_EQ(::write(ends.at[1], "abc", 3), 3);
                     }});
        EXPECT_STREQ(got, "abc");
      }
}

TEST(hook_calls, pwritev2_without_a_position_waits_as_writev_does) {
  std::string data(1 << 20, 'x');
  for (const both_ways& way : of_flags)
    for (const bool by_sockets : {true, false})
      for (const int flags : for_disks) {
        both_ends ends{by_sockets};
        const iovec parts[2] = {{data.data(), 7}, {data.data() + 7, data.size() - 7}};
        std::size_t got = 0;
        run_at_once({[&] { EXPECT_EQ(way.write(ends.at[1], parts, 2, -1, flags), static_cast<ssize_t>(data.size())); },
                     [&] {
                       char buffer[4096];
                       while (got < data.size()) {
                         const ssize_t size = ::read(ends.at[0], buffer, sizeof buffer);
                         ASSERT_GT(size, 0) << std::strerror(errno);
                         got += static_cast<std::size_t>(size);
                       }
                     }});
        EXPECT_EQ(got, data.size());
      }
}

TEST(hook_calls, the_flags_of_preadv2_and_pwritev2_have_their_effect) {
  for (const both_ways& way : of_flags)
    for (const bool elsewhere : {false, true}) {
      const plain_file file;
      const auto calls = [&] {
        char text[] = "abc", got[8] = {};
        const iovec from{text, 3}, into{got, 2};
        EXPECT_EQ(way.write(file.number, &from, 1, -1, RWF_DSYNC), 3);
        EXPECT_EQ(::lseek(file.number, 0, SEEK_CUR), 3);
        EXPECT_EQ(way.write(file.number, &from, 1, 0, RWF_APPEND), 3);
        EXPECT_EQ(::lseek(file.number, 0, SEEK_SET), 0);
        EXPECT_EQ(way.write(file.number, &from, 1, -1, RWF_APPEND), 3);
        EXPECT_EQ(::lseek(file.number, 0, SEEK_CUR), 9) << "all that was written was added at the end";
        EXPECT_EQ(::lseek(file.number, 0, SEEK_SET), 0);
        EXPECT_EQ(way.read(file.number, &into, 1, 1, RWF_HIPRI), 2);
        EXPECT_STREQ(got, "bc");
        EXPECT_EQ(way.read(file.number, &into, 1, -1, 0), 2);
        EXPECT_STREQ(got, "ab");
        EXPECT_EQ(way.read(file.number, &into, 1, -1, RWF_HIPRI), 2);
        EXPECT_STREQ(got, "ca");
      };
      const auto body = [&]() -> task<> { co_await weft::hooked({.files = elsewhere}, calls); };
      on_a_worker(body());
    }
}

TEST(hook_calls, flags_for_disks_are_refused_where_the_system_does) {
  char text[] = "abcdefgh";
  const iovec from{text, 8};
  const int counter = ::eventfd(0, EFD_CLOEXEC);  // whose driver knows none
  for (const both_ways& way : of_flags)
    run_hooked([&] {
      EXPECT_EQ(told([&] { return way.write(counter, &from, 1, -1, RWF_DSYNC); }),
                told([&] { return ::syscall(SYS_pwritev2, counter, &from, 1L, -1L, 0L, RWF_DSYNC); }));
    });
  ::close(counter);
}

TEST(hook_calls, preadv2_and_pwritev2_that_never_wait_give_what_the_system_gives) {
  char text[] = "abc", got[8];
  const iovec from{text, 3}, into{got, sizeof got};
  for (const both_ways& way : of_flags)
    for (const bool by_sockets : {true, false})
      for (const off_t at : {-2, -1, 0})
        for (const int flags : {RWF_NOWAIT, RWF_NOWAIT | RWF_DSYNC, 1 << 30}) {
          both_ends ends{by_sockets};
          const auto low = static_cast<unsigned long>(at);
          run_hooked([&] {
            EXPECT_EQ(told([&] { return way.read(ends.at[0], &into, 1, at, flags); }),
                      told([&] { return ::syscall(SYS_preadv2, ends.at[0], &into, 1L, low, 0L, flags); }));
            EXPECT_EQ(told([&] { return way.write(ends.at[1], &from, 1, at, flags); }),
                      told([&] { return ::syscall(SYS_pwritev2, ends.at[1], &from, 1L, low, 0L, flags); }));
          });
        }
}

// ---- regular files ----------------------------------------------------------------------------------------------------------

struct file_call {
  const char* name;
  below at;
  std::function<ssize_t(int number, char* memory)> make;  // moves three bytes
};

// The call below the hook is held until another fiber of the worker has run, unless it is made on the worker's own thread.
void expect_runs(const file_call& one, bool elsewhere) {
  const testing::ScopedTrace trace{__FILE__, __LINE__, one.name};
  const plain_file file;
  ASSERT_EQ(::pwrite(file.number, "abcdef", 6, 0), 6);
  char memory[4] = "xyz";
  std::thread::id worker;
  std::atomic<bool> other_ran{false};
  int calls = 0;
  bool was_elsewhere = false;
  const test::watch_below held{one.at, [&] {
                                 ++calls;
                                 was_elsewhere = std::this_thread::get_id() != worker;
                                 if (was_elsewhere) other_ran.wait(false);
                               }};
  const auto moves = [&] {
    worker = std::this_thread::get_id();
    EXPECT_EQ(one.make(file.number, memory), 3);
  };
  const auto other = [&] {
    other_ran = true;
    other_ran.notify_all();
  };
  const auto body = [&](scope& inside) -> task<> {
    inside.fork(weft::hooked({.files = elsewhere}, moves));
    inside.fork(weft::hooked(other));
    co_return;
  };
  const auto all = [&]() -> task<> { co_await weft::with_scope(body); };
  test::concern({file.number});
  on_a_worker(all());
  test::concern({});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(was_elsewhere, elsewhere);
}

TEST(hook_calls, every_call_on_a_file_blocks_a_thread_of_the_pool_with_files_on_and_the_worker_with_files_off) {
  const auto by_parts = [](auto call) {
    return [call](int number, char* memory) {
      const iovec parts[2] = {{memory, 1}, {memory + 1, 2}};
      return call(number, parts, 2);
    };
  };
  const auto at_one = [&](auto call) {
    return by_parts([call](int number, const iovec* parts, int count) { return call(number, parts, count, 1); });
  };
  const auto with = [&](auto call, off_t at, int flags) {
    return by_parts([=](int number, const iovec* parts, int count) { return call(number, parts, count, at, flags); });
  };
  const file_call each[] = {
      {"read", below::read, [](int number, char* memory) { return ::read(number, memory, 3); }},
      {"__read_chk", below::read, [](int number, char* memory) { return __read_chk(number, memory, 3, 3); }},
      {"write", below::write, [](int number, char* memory) { return ::write(number, memory, 3); }},
      {"readv", below::readv, by_parts(::readv)},
      {"writev", below::writev, by_parts(::writev)},
      {"pread", below::pread, [](int number, char* memory) { return ::pread(number, memory, 3, 1); }},
      {"__pread_chk", below::pread, [](int number, char* memory) { return __pread_chk(number, memory, 3, 1, 3); }},
      {"pread64", below::pread64, [](int number, char* memory) { return ::pread64(number, memory, 3, 1); }},
      {"__pread64_chk", below::pread64,
       [](int number, char* memory) { return __pread64_chk(number, memory, 3, 1, 3); }},
      {"pwrite", below::pwrite, [](int number, char* memory) { return ::pwrite(number, memory, 3, 1); }},
      {"pwrite64", below::pwrite64, [](int number, char* memory) { return ::pwrite64(number, memory, 3, 1); }},
      {"preadv", below::preadv, at_one(::preadv)},
      {"preadv64", below::preadv64, at_one(::preadv64)},
      {"pwritev", below::pwritev, at_one(::pwritev)},
      {"pwritev64", below::pwritev64, at_one(::pwritev64)},
      {"preadv2", below::by_preadv2, with(::preadv2, 1, 0)},
      {"preadv2 at -1", below::readv, with(::preadv2, -1, 0)},
      {"preadv2 at -1 with a flag", below::by_preadv2, with(::preadv2, -1, RWF_HIPRI)},
      {"preadv64v2", below::by_preadv64v2, with(::preadv64v2, 1, 0)},
      {"preadv64v2 at -1", below::readv, with(::preadv64v2, -1, 0)},
      {"preadv64v2 at -1 with a flag", below::by_preadv64v2, with(::preadv64v2, -1, RWF_HIPRI)},
      {"pwritev2", below::by_pwritev2, with(::pwritev2, 1, RWF_DSYNC)},
      {"pwritev2 at -1", below::writev, with(::pwritev2, -1, 0)},
      {"pwritev2 at -1 with a flag", below::by_pwritev2, with(::pwritev2, -1, RWF_DSYNC)},
      {"pwritev64v2", below::by_pwritev64v2, with(::pwritev64v2, 1, RWF_DSYNC)},
      {"pwritev64v2 at -1", below::writev, with(::pwritev64v2, -1, 0)},
      {"pwritev64v2 at -1 with a flag", below::by_pwritev64v2, with(::pwritev64v2, -1, RWF_DSYNC)},
  };
  for (const file_call& one : each)
    for (const bool elsewhere : {true, false}) expect_runs(one, elsewhere);
}

}  // namespace
