// A process that forks goes on with its sockets, whatever the child does to its copies of them: their epoll sets and rings are
// the parent's. See src/io/io_service.hpp.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <span>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "net/open_descriptors.hpp"
#include "net/sockets.hpp"

namespace {
// What a thread does at its next allocation that is as large as what a service makes for its descriptors, under its lock.
thread_local std::function<void()>* at_large_allocation = nullptr;
}  // namespace

#if !defined(WEFT_TEST_TSAN) && !defined(WEFT_TEST_ASAN)  // those have their own in the program
namespace {
void* allocate(std::size_t size, std::size_t alignment) {
  if (size >= 64 * 128 && at_large_allocation != nullptr) (*std::exchange(at_large_allocation, nullptr))();
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, size != 0 ? size : 1) != 0) throw std::bad_alloc{};
  return memory;
}
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
// The kit may have its own of these in the program.
[[gnu::noinline]] void* operator new[](std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace {

using namespace std::chrono_literals;
using test::connection;
using weft::task;
using weft::net::stream;

// What a child ends with: 0 where `body` has given true.
int in_a_child(auto body) {
  const pid_t child = ::fork();
  if (child == 0) {
    sigset_t none;  // a worker lets no signal come
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::alarm(60);  // instead of for ever
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// Each end is closed there, and nothing else. None is asked for its number, by which others might have a duplicate.
bool closes_all(std::span<connection*> all) {
  const std::size_t open = test::open_descriptors();
  for (connection* const one : all)
    for (stream* const end : {&one->here, &one->there}) {
      if (one == all.front())
        *end = {};
      else
        end->close();
    }
  return test::open_descriptors() + 2 * all.size() == open;
}

task<> read_one(stream& from) {
  std::array<std::byte, 4> buffer;
  EXPECT_EQ(co_await from.read(buffer), 1U);
}

// One connection has never been waited for, in one a read waits, and in one a read has waited.
task<> survives_a_child() {
  connection fresh = co_await test::connected_by_tcp();
  connection waits = co_await test::connected_by_tcp();
  connection waited = co_await test::connected_by_tcp();
  co_await weft::with_scope([&](weft::scope& s) -> task<> {
    auto before = s.fork(read_one(waited.here));
    auto reads = s.fork(read_one(waits.here));
    co_await weft::sleep_for(5ms);
    co_await waited.there.write("1");
    co_await std::move(before);
    std::array all{&fresh, &waits, &waited};
    EXPECT_EQ(in_a_child([&] { return closes_all(all); }), 0);
    co_await waits.there.write("2");
    co_await std::move(reads);
    for (connection* const one : all) {
      auto later = s.fork(read_one(one->here));
      co_await weft::sleep_for(1ms);
      co_await one->there.write("3");
      co_await std::move(later);
    }
  });
}

#if defined(WEFT_TEST_TSAN)
#define SKIP_WITHOUT_FORK() GTEST_SKIP() << "the thread sanitizer can't go on in a forked child that has threads"
#else
#define SKIP_WITHOUT_FORK() static_cast<void>(0)
#endif

TEST(a_forked_child, closes_its_copies_of_what_is_in_a_runtime) {
  SKIP_WITHOUT_FORK();
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) weft::runtime{{.threads = threads, .io = by}}.run(survives_a_child());
}
TEST(a_forked_child, closes_its_copies_of_what_is_in_no_runtime) {
  SKIP_WITHOUT_FORK();
  weft::sync_wait(survives_a_child());
}

TEST(a_forked_child, gives_a_copy_away) {
  SKIP_WITHOUT_FORK();
  const auto body = []() -> task<> {
    connection one = co_await test::connected_by_tcp();
    EXPECT_EQ(in_a_child([&] {
                const int number = one.here.native_handle();
                return one.here.release() == number && ::fcntl(number, F_GETFD) >= 0;
              }),
              0);
    co_await weft::with_scope([&](weft::scope& s) -> task<> {
      auto reads = s.fork(read_one(one.here));
      co_await weft::sleep_for(1ms);
      co_await one.there.write("x");
      co_await std::move(reads);
    });
  };
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    weft::runtime{{.threads = 1, .io = by}}.run(body());
}

// As where another thread of the parent has the lock: nobody in the child gives it back.
task<> survives_a_child_that_is_forked_under_a_lock() {
  connection mine = test::connected();
  std::vector<connection> others;
  int status = -1;
  std::function<void()> forks = [&] {
    status = in_a_child([&] {
      std::array all{&mine};
      return closes_all(all);
    });
  };
  others.reserve(65);
  at_large_allocation = &forks;
  while (at_large_allocation != nullptr && others.size() != 65) others.push_back(test::connected());
  EXPECT_EQ(std::exchange(at_large_allocation, nullptr), nullptr) << "no service has allocated anything";
  EXPECT_EQ(status, 0);
  co_return;
}

TEST(a_forked_child, waits_for_no_lock_that_its_parent_had) {
  SKIP_WITHOUT_FORK();
#if defined(WEFT_TEST_ASAN)
  GTEST_SKIP() << "the address sanitizer has its own operator new";
#endif
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    weft::runtime{{.threads = 1, .io = by}}.run(survives_a_child_that_is_forked_under_a_lock());
  weft::sync_wait(survives_a_child_that_is_forked_under_a_lock());
}

// By a set of its own, and with a thread of its own.
TEST(a_forked_child, has_sockets_outside_of_runtimes) {
  SKIP_WITHOUT_FORK();
  const auto talk = []() -> task<> {
    connection one = test::connected();
    co_await weft::with_scope([&](weft::scope& s) -> task<> {
      auto reads = s.fork(read_one(one.here));
      co_await weft::sleep_for(5ms);
      co_await one.there.write("x");
      co_await std::move(reads);
    });
  };
  connection mine = test::connected();
  weft::sync_wait(talk());
  const auto talks = [&] {
    weft::sync_wait(talk());
    mine.here.close();
    mine.there.close();
    weft::runtime{{.threads = 1}}.run(talk());
    return !testing::Test::HasFailure();
  };
  EXPECT_EQ(in_a_child(talks), 0);
  EXPECT_EQ(in_a_child([&] { return in_a_child(talks) == 0 && talks(); }), 0);
  weft::sync_wait(talk());
}

TEST(a_forked_child_misuse, makes_a_socket_in_a_runtime_of_its_parents) {
  SKIP_WITHOUT_FORK();
  const auto body = []() -> task<> {
    const auto makes = [] {
      GTEST_FLAG_SET(death_test_style, "fast");  // which forks here
      EXPECT_DEATH(test::connected(), "was made in a runtime of the process that this one was forked from");
    };
    makes();
    co_return;
  };
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    weft::runtime{{.threads = 1, .io = by}}.run(body());
}

}  // namespace
