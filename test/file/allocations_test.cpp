// Files and sockets without memory, in runtimes on either back end: each allocation of a run fails once, in turn, those of frames
// and those of operator new. The kit's sweeps do the same outside of a runtime, where nothing goes by a ring.
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/datagram.hpp>
#include <weft/file.hpp>
#include <weft/io.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/unix.hpp>

#include "file/directories.hpp"
#include "net/open_descriptors.hpp"
#include "support/weft_test.hpp"

namespace {

// Of the thread that counts: how many allocations there were, and which one fails. 0: none.
struct lack {
  bool counts = false;
  std::size_t so_far = 0, fails_at = 0;
  bool is_this_one() noexcept { return counts && ++so_far == fails_at; }
};
thread_local lack of_thread;

void* take_memory(std::size_t size, std::size_t alignment) {
  if (of_thread.is_this_one()) throw std::bad_alloc{};
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, size != 0 ? size : 1) != 0) throw std::bad_alloc{};
  return memory;
}

// Of the frames of a run, so that each is asked for, and not taken from what a worker keeps.
class frames final : public std::pmr::memory_resource {
 public:
  ~frames() override { EXPECT_EQ(live_, 0U) << "frames are left"; }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    void* const memory = take_memory(size, alignment < sizeof(void*) ? sizeof(void*) : alignment);
    ++live_;
    return memory;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override {
    --live_;
    std::free(memory);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::size_t live_ = 0;
};

}  // namespace

#if !defined(WEFT_TEST_TSAN) && !defined(WEFT_TEST_ASAN)  // those have their own in the program; frames fail there, too
[[gnu::noinline]] void* operator new(std::size_t size) { return take_memory(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return take_memory(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return take_memory(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return take_memory(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace {

using weft::file;
using weft::task;
using weft::net::endpoint;

// ---- what is done -----------------------------------------------------------------------------------------------------------

constexpr weft::file_options to_make{.read = true, .write = true, .create = true};

task<> uses_files(const std::string& directory) {
  file one = co_await file::open(to_make, directory + "/one");
  std::vector<std::byte> piece(4096, std::byte{7});
  co_await one.write_at(0, piece);
  co_await one.append("more");
  co_await one.sync();
  const auto size = co_await one.size();
  EXPECT_GE(size, 4100U);
  const auto got = co_await one.read_at(4096, piece);
  EXPECT_GE(got, 4U);
  co_await one.truncate(0);
  co_await one.close();
  co_await weft::write_file(directory + "/two", "text");
  const std::string text = co_await weft::read_file(directory + "/two");
  EXPECT_EQ(text, "text");
  co_await weft::replace_file(directory + "/two", "another");
}

task<> says(const weft::net::stream& to, std::string_view what) {
  co_await to.write(what);
  to.shutdown();
}
task<> hears(const weft::net::stream& from) {
  weft::io::buffered_reader in{from};
  const auto line = co_await in.read_line();
  EXPECT_EQ(line, "hello");
  const weft::net::lent_buffer rest = co_await from.receive();
  EXPECT_EQ(rest.bytes().size(), 0U);
}
task<> uses_streams(const std::string& directory) {
  for (const endpoint& where : {endpoint{"127.0.0.1", 0}, endpoint::unix_path(directory + "/socket")}) {
    weft::net::listener at = co_await weft::net::listen(where);
    const weft::net::stream here = co_await weft::net::connect(at.local());
    const weft::net::stream there = co_await at.accept();
    const auto both = [&](weft::scope& s) -> task<> {  // whoever fails stops the other one, which would wait
      s.fork(hears(there));
      s.fork(says(here, "hello\n"));
      co_return;
    };
    co_await weft::with_scope(both);
  }
}

task<> sends(const weft::net::datagram& from, const endpoint& to) {
  const endpoint where = to;
  for (int i = 0; i != 12; ++i) co_await from.send_to("x", where);  // more than a Unix socket has room for
}
task<> receives(const weft::net::datagram& at) {
  weft::net::incoming_buffers buffers{4, 16};
  for (std::size_t got = 0; got != 12;) got += co_await at.receive_batch(buffers);
}
task<> uses_datagrams(const std::string& directory) {
  const weft::net::datagram there = co_await weft::net::bind(endpoint::unix_path(directory + "/there"));
  const weft::net::datagram here = co_await weft::net::bind(endpoint::unix_path(directory + "/here"));
  const auto both = [&](weft::scope& s) -> task<> {
    s.fork(sends(here, there.local()));
    s.fork(receives(there));
    co_return;
  };
  co_await weft::with_scope(both);
}

// ---- the sweep --------------------------------------------------------------------------------------------------------------

using use = task<> (*)(const std::string& directory);

// Whether something lacked memory, which it then has said. What runs beside it is stopped.
void run_once(weft::runtime& rt, use what, std::size_t fails_at, bool& struck) {
  const test::own_directory place;
  frames all;
  const auto counted = [&](weft::scope&) -> task<> {
    of_thread = {.counts = true, .fails_at = fails_at};
    co_await what(place.path());
  };
  const auto body = [&]() -> task<> {
    auto with_own = weft::with_scope({.memory = &all, .memory_is_shared = true}, counted);  // by one thread
    const auto how = co_await weft::as_result(std::move(with_own));
    struck = of_thread.so_far >= fails_at && fails_at != 0;
    of_thread = {};
    if (!how.exception()) co_return;
    EXPECT_TRUE(struck);
    try {
      std::rethrow_exception(how.exception());
    } catch (const std::bad_alloc&) {
    } catch (const std::system_error& failure) {
      EXPECT_EQ(failure.code(), std::errc::not_enough_memory) << failure.what();
    }
  };
  rt.run(body());
}

void sweep(use what) {
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll}) {
    weft::runtime rt{{.threads = 1, .io = by}};
    bool struck = false;
    for (int i = 0; i != 2; ++i) run_once(rt, what, 0, struck);  // what is made once is made
    const std::size_t open = test::open_descriptors(), watched = rt.stats().watched;
    std::size_t at = 1;
    for (;; ++at) {
      const testing::ScopedTrace trace{__FILE__, __LINE__, "allocation " + std::to_string(at) + ": " + rt.explain()};
      run_once(rt, what, at, struck);
      // The ring lets go of what was armed a little later.
      for (int i = 0; i != 6000 && test::open_descriptors() > open; ++i) ::usleep(5000);
      EXPECT_EQ(test::open_descriptors(), open);
      EXPECT_EQ(rt.stats().watched, watched);
      if (!struck || testing::Test::HasFailure()) break;
    }
    EXPECT_GT(at, 10U) << "nothing was counted";
  }
}

TEST(without_memory, files) { sweep(uses_files); }
TEST(without_memory, streams) { sweep(uses_streams); }
TEST(without_memory, datagrams) { sweep(uses_datagrams); }

}  // namespace
