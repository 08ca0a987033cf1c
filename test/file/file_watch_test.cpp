// What happens to files, as it is told. In runtimes on either back end, too.
#include <weft/file_watch.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/error.hpp>
#include <weft/fiber.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/stop.hpp>
#include <weft/with.hpp>

#include "file/temporary_tree.hpp"
#include "net/open_descriptors.hpp"
#include "support/in_runtime.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::sync_wait;
using weft::task;
using weft::fs::file_change;
using weft::fs::file_event;
using weft::fs::file_watch;
using weft::fs::watch_id;

// What the next calls with an inotify descriptor come to; 0: as they are.
std::atomic<int> next_add{0}, next_read{0};

bool is_of_inotify(int number) {
  char name[32], text[32] = {};
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", number);
  return ::readlink(name, text, sizeof text - 1) > 0 && std::string_view{text} == "anon_inode:inotify";
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
int __real_inotify_add_watch(int number, const char* path, std::uint32_t mask);
ssize_t __real_read(int number, void* into, std::size_t size);

int __wrap_inotify_add_watch(int number, const char* path, std::uint32_t mask) {
  if (const int refused = next_add.exchange(0); refused != 0) return (errno = refused, -1);
  return __real_inotify_add_watch(number, path, mask);
}
ssize_t __wrap_read(int number, void* into, std::size_t size) {
  if (next_read != 0 && is_of_inotify(number)) return (errno = next_read.exchange(0), -1);
  return __real_read(number, into, size);
}
}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

void append(const std::string& path, const std::string& text) {
  const int number = ::open(path.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
  EXPECT_EQ(::write(number, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(number);
}

void expect(const file_event& one, watch_id of, file_change what, const std::string& name) {
  EXPECT_EQ(one.watch, of);
  EXPECT_EQ(one.what, what);
  EXPECT_EQ(one.name, name);
}

WEFT_TEST("file_watch: tells what happens to the names in a directory, in order") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id all = co_await watch.add(in.path());
  append(in.at("a"), "1");
  ::chmod(in.at("a").c_str(), 0600);
  in.directory("sub");
  ::unlink(in.at("a").c_str());
  expect(co_await watch.next(), all, file_change::created, "a");
  expect(co_await watch.next(), all, file_change::modified, "a");
  expect(co_await watch.next(), all, file_change::written, "a");
  expect(co_await watch.next(), all, file_change::attributes, "a");
  const file_event made = co_await watch.next();
  expect(made, all, file_change::created, "sub");
  EXPECT_TRUE(made.is_directory);
  EXPECT_EQ(made.cookie, 0u);
  expect(co_await watch.next(), all, file_change::removed, "a");
}

WEFT_TEST("file_watch: both sides of a move have one cookie, also across two directories") {
  const test::temporary_tree in;
  in.file("from/a");
  in.directory("to");
  file_watch watch;
  const auto moves = file_change::moved_from | file_change::moved_to;
  const watch_id from = co_await watch.add(in.at("from"), moves), to = co_await watch.add(in.at("to"), moves);
  EXPECT_NE(from, to);
  ::rename(in.at("from/a").c_str(), in.at("to/b").c_str());
  ::rename(in.at("to/b").c_str(), in.at("to/c").c_str());
  const file_event out = co_await watch.next(), into = co_await watch.next();
  expect(out, from, file_change::moved_from, "a");
  expect(into, to, file_change::moved_to, "b");
  EXPECT_EQ(out.cookie, into.cookie);
  EXPECT_NE(out.cookie, 0u);
  const file_event again = co_await watch.next();
  EXPECT_NE(again.cookie, out.cookie);
}

WEFT_TEST("file_watch: of a file itself: written, moved, removed, ended") {
  const test::temporary_tree in;
  const std::string file = in.file("a");
  file_watch watch;
  const watch_id one =
      co_await watch.add(file, file_change::modified | file_change::self_moved | file_change::self_removed);
  append(file, "2");
  ::rename(file.c_str(), in.at("b").c_str());
  ::unlink(in.at("b").c_str());
  expect(co_await watch.next(), one, file_change::modified, "");
  expect(co_await watch.next(), one, file_change::self_moved, "");
  expect(co_await watch.next(), one, file_change::self_removed, "");
  expect(co_await watch.next(), one, file_change::ended, "");
  EXPECT_FALSE(watch.remove(one));
}

WEFT_TEST("file_watch: what is watched already keeps its id, and is watched for something else") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id first = co_await watch.add(in.path(), file_change::created);
  const watch_id second = co_await watch.add(in.path() + "/.", file_change::removed);
  EXPECT_EQ(first, second);
  const std::string file = in.file("a");
  ::unlink(file.c_str());
  expect(co_await watch.next(), first, file_change::removed, "a");
}

WEFT_TEST("file_watch: links, directories only, and files without a name") {
  const test::temporary_tree in;
  const std::string file = in.file("a"), link = in.at("link");
  EXPECT_EQ(::symlink("a", link.c_str()), 0);
  file_watch watch;
  const watch_id of_file = co_await watch.add(link), of_link = co_await watch.add({.follow_symlinks = false}, link);
  EXPECT_NE(of_file, of_link);
  const auto no_directory = co_await as_result(watch.add({.only_directory = true}, file));
  EXPECT_EQ(no_directory.error(), std::errc::not_a_directory);
  const auto missing = co_await as_result(watch.add(in.at("missing")));
  EXPECT_EQ(missing.error(), std::errc::no_such_file_or_directory);
  const auto cut = co_await as_result(watch.add(file + std::string("\0b", 2)));
  EXPECT_EQ(cut.error(), std::errc::invalid_argument);
}

WEFT_TEST("file_watch: thousands of events come, one after the other, with names of any length") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id all = co_await watch.add(in.path(), file_change::created);
  std::vector<std::string> names;
  for (int i = 0; i != 3000; ++i) {
    names.push_back(std::string(static_cast<std::size_t>(i % 200), 'x') + std::to_string(i));
    ::close(::open(in.at(names.back()).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  for (const std::string& name : names) expect(co_await watch.next(), all, file_change::created, name);
}

WEFT_TEST("file_watch: who is late is told that events were lost") {
  const test::temporary_tree in;
  int most = 0;
  std::FILE* const limit = std::fopen("/proc/sys/fs/inotify/max_queued_events", "r");
  EXPECT_EQ(std::fscanf(limit, "%d", &most), 1);
  std::fclose(limit);
  if (most > 100'000) co_return;
  file_watch watch;
  const watch_id a = co_await watch.add(in.file("a"), file_change::attributes);
  const watch_id b = co_await watch.add(in.file("b"), file_change::attributes);
  for (int i = 0; i != most / 2 + 10; ++i)  // one after the other, since the same twice in a row counts once
    for (const char* one : {"a", "b"}) ::chmod(in.at(one).c_str(), 0600);
  int came = 0;
  for (;; ++came) {
    const file_event one = co_await watch.next();
    if (!one.has(file_change::overflow)) continue;
    EXPECT_EQ(one.watch, watch_id::none);
    break;
  }
  EXPECT_EQ(came, most);
  ::chmod(in.at("a").c_str(), 0644);
  expect(co_await watch.next(), a, file_change::attributes, "");  // and it goes on
  EXPECT_TRUE(watch.remove(b));
}

// ---- waits ------------------------------------------------------------------------------------------------------------------

TEST(file_watch, wakes_tasks_fibers_and_threads) {
  const test::temporary_tree in;
  const auto in_a_while = [&](const char* name) {
    return std::jthread{[&, name] {
      std::this_thread::sleep_for(2ms);
      append(in.at(name), "x");
    }};
  };
  for (const auto io : {weft::io_backend::epoll, weft::io_backend::automatic}) {
    weft::runtime rt{{.threads = 1, .io = io}};
    auto body = [&]() -> task<> {
      file_watch watch;
      const watch_id all = co_await watch.add(in.path(), file_change::created);
      const std::jthread first = in_a_while("a");
      expect(co_await watch.next(), all, file_change::created, "a");
      auto fibers = [&](weft::scope& s) -> task<> {
        auto fiber = s.go([&] {
          const std::jthread second = in_a_while("b");
          expect(weft::await(watch.next()), all, file_change::created, "b");
        });
        co_await std::move(fiber);
      };
      co_await weft::with_scope(fibers);
    };
    rt.run(body());
    ::unlink(in.at("a").c_str());
    ::unlink(in.at("b").c_str());
  }
  file_watch watch;
  const watch_id all = sync_wait(watch.add(in.path(), file_change::created));
  const std::jthread third = in_a_while("c");
  expect(sync_wait(watch.next()), all, file_change::created, "c");
}

WEFT_TEST("file_watch: a watch that is removed while somebody waits ends") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id one = co_await watch.add(in.path());
  auto body = [&](weft::scope& s) -> task<> {
    auto waits = s.fork(watch.next());
    EXPECT_TRUE(watch.remove(one));
    expect(co_await std::move(waits), one, file_change::ended, "");
  };
  co_await weft::with_scope(body);
  EXPECT_FALSE(watch.remove(one));
  EXPECT_FALSE(watch.remove(watch_id::none));
}

WEFT_TEST("file_watch: a directory that is removed while somebody waits ends") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id one = co_await watch.add(in.directory("sub"));
  auto body = [&](weft::scope& s) -> task<> {
    auto waits = s.fork(watch.next());
    ::rmdir(in.at("sub").c_str());
    expect(co_await std::move(waits), one, file_change::self_removed, "");
    expect(co_await watch.next(), one, file_change::ended, "");
  };
  co_await weft::with_scope(body);
}

WEFT_TEST("file_watch: a stop has taken nothing") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id all = co_await watch.add(in.path(), file_change::created);
  auto body = [&](weft::scope& s) -> task<> {
    auto waits = s.fork(watch.next());
    waits.request_stop();
    const auto ended = co_await as_result(std::move(waits));
    EXPECT_TRUE(ended.is_stopped());
    in.file("a");
    expect(co_await watch.next(), all, file_change::created, "a");
  };
  co_await weft::with_scope(body);
}

WEFT_TEST("file_watch: the next event is a case of a select, which takes none where another one is chosen") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id all = co_await watch.add(in.path(), file_change::created);
  weft::channel<int> numbers{1};
  co_await numbers.send(7);
  const auto number = co_await weft::select(weft::on_receive(numbers), weft::on(watch.next()));
  EXPECT_EQ(number.index, 0U);
  in.file("a");
  in.file("b");
  for (const char* name : {"a", "b"}) {  // the second was read with the first
    const auto got = co_await weft::select(weft::on_receive(numbers), weft::on(watch.next()));
    EXPECT_EQ(got.index, 1U);
    expect(std::get<1>(got.value), all, file_change::created, name);
  }
  const auto none = co_await weft::select(weft::on(watch.next()), weft::otherwise);
  EXPECT_EQ(none.index, 1U);
}

WEFT_TEST("file_watch: moved, and then made anew in its place") {
  const test::temporary_tree in;
  {
    const file_watch first;  // what is made once is there
  }
  const std::size_t before = test::open_descriptors();
  {
    file_watch first;
    const watch_id all = co_await first.add(in.path(), file_change::created);
    file_watch second = std::move(first);
    in.file("a");
    expect(co_await second.next(), all, file_change::created, "a");
    EXPECT_FALSE(first.remove(all));  // NOLINT(bugprone-use-after-move): there is none
    const auto none = co_await as_result(first.next());
    EXPECT_EQ(none.error(), weft::errc::closed);
    const auto nowhere = co_await as_result(first.add(in.path()));
    EXPECT_EQ(nowhere.error(), weft::errc::closed);
    second = file_watch{};
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

// ---- limits -----------------------------------------------------------------------------------------------------------------

WEFT_TEST("file_watch: where the process may have no more descriptors, it says so") {
  co_await file_watch{}.add("/");  // what is made once is there
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  std::error_code refused;
  std::string sentence;
  try {
    const file_watch one;
  } catch (const weft::error& failure) {
    refused = failure.code();
    sentence = failure.what();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(refused, std::errc::too_many_files_open);
  EXPECT_NE(sentence.find("max_user_instances"), std::string::npos) << sentence;
}

WEFT_TEST("file_watch: where the user may have no more watches, it says so, and goes on with those that are there") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id all = co_await watch.add(in.path(), file_change::created);
  next_add = ENOSPC;
  const auto refused = co_await as_result(watch.add("/"));
  EXPECT_EQ(refused.error(), std::errc::no_space_on_device);
  try {
    std::rethrow_exception(refused.exception());
  } catch (const weft::error& failure) {
    EXPECT_NE(std::string_view{failure.what()}.find("fs.inotify.max_user_watches"), std::string_view::npos)
        << failure.what();
  }
  next_add = EACCES;
  const auto denied = co_await as_result(watch.add("/"));
  EXPECT_EQ(denied.error(), std::errc::permission_denied);
  in.file("a");
  expect(co_await watch.next(), all, file_change::created, "a");
}

WEFT_TEST("file_watch: a read that is interrupted goes on, and one that fails loses no event") {
  const test::temporary_tree in;
  file_watch watch;
  const watch_id all = co_await watch.add(in.path(), file_change::created);
  in.file("a");
  next_read = EINTR;
  expect(co_await watch.next(), all, file_change::created, "a");
  in.file("b");
  for (const int number : {EIO, ENOMEM}) {
    next_read = number;
    const auto failed = co_await as_result(watch.next());
    EXPECT_EQ(failed.error(), std::error_code(number, std::generic_category()));
  }
  expect(co_await watch.next(), all, file_change::created, "b");
}

class file_watch_misuse : public testing::Test {
 protected:
  file_watch_misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(file_watch_misuse, two_that_wait) {
  const auto both = [] {
    file_watch watch;
    sync_wait(weft::when_all(watch.next(), watch.next()));
  };
  EXPECT_DEATH(both(), "weft: two tasks wait for the next event of one file_watch at once");
}

TEST_F(file_watch_misuse, for_nothing) {
  const auto nothing = [] { sync_wait(file_watch{}.add("/", file_change::ended)); };
  EXPECT_DEATH(nothing(), "weft: a file_watch was asked to watch for nothing");
}

}  // namespace
