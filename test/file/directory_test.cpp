// Paths, what lies in directories, and trees that are removed. In runtimes on either back end, too.
// Long because each way in which a tree may change meanwhile is a scene of its own.
#include <weft/directory.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/error.hpp>
#include <weft/fiber.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
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
namespace fs = weft::fs;
using names = std::set<std::string>;

// All paths, each of which comes once.
task<names> names_in(fs::directory_options how, std::string path) {
  names found;
  for (auto all = fs::directory(how, path); auto* one = co_await all.next();)
    EXPECT_TRUE(found.insert(one->path).second) << one->path << " came twice";
  co_return found;
}

// ---- paths ------------------------------------------------------------------------------------------------------------------

WEFT_TEST("paths: what a path leads to, and a link itself") {
  const test::temporary_tree in;
  const std::string file = in.file("a.txt", "12345"), link = in.at("link");
  ::chmod(file.c_str(), 0640);
  co_await fs::create_symlink("a.txt", link);
  const fs::file_status of = co_await fs::status(link);
  EXPECT_EQ(of.kind, fs::file_kind::regular);
  EXPECT_EQ(of.size, 5u);
  EXPECT_EQ(of.permissions, 0640u);
  EXPECT_EQ(of.links, 1u);
  EXPECT_EQ(of.user, ::geteuid());
  struct stat as_system_says{};
  ::stat(file.c_str(), &as_system_says);
  EXPECT_EQ(of.inode, as_system_says.st_ino);
  EXPECT_EQ(of.device, as_system_says.st_dev);
  EXPECT_EQ(std::chrono::floor<std::chrono::seconds>(of.modified).time_since_epoch().count(), as_system_says.st_mtime);
  const fs::file_status of_link = co_await fs::symlink_status(link);
  EXPECT_EQ(of_link.kind, fs::file_kind::symlink);
  EXPECT_EQ(co_await fs::read_symlink(link), "a.txt");
  const fs::file_status of_directory = co_await fs::status(in.path());
  EXPECT_EQ(of_directory.kind, fs::file_kind::directory);
}

WEFT_TEST("paths: a link of any length is read") {
  const test::temporary_tree in;
  for (const std::size_t size : {1U, 255U, 256U, 257U, 4000U}) {
    const std::string text(size, 'x'), link = in.at(std::to_string(size));
    co_await fs::create_symlink(text, link);
    EXPECT_EQ(co_await fs::read_symlink(link), text);
  }
}

WEFT_TEST("paths: whether there is anything") {
  const test::temporary_tree in;
  const std::string file = in.file("a");
  EXPECT_TRUE(co_await fs::exists(file));
  EXPECT_FALSE(co_await fs::exists(in.at("b")));
  EXPECT_FALSE(co_await fs::exists(file + "/below"));
  co_await fs::create_symlink("nowhere", in.at("dangles"));
  EXPECT_FALSE(co_await fs::exists(in.at("dangles")));
  co_await fs::create_symlink("circle", in.at("circle"));
  const auto circle = co_await as_result(fs::exists(in.at("circle")));
  EXPECT_EQ(circle.error(), std::errc::too_many_symbolic_link_levels);
}

WEFT_TEST("paths: renamed, linked, removed") {
  const test::temporary_tree in;
  const std::string a = in.file("a", "1"), b = in.file("b", "22"), c = in.at("c");
  const auto refused = co_await as_result(fs::rename({.replace = false}, a, b));
  EXPECT_EQ(refused.error(), std::errc::file_exists);
  co_await fs::rename({.replace = false}, b, c);
  co_await fs::rename(a, c);
  const fs::file_status of = co_await fs::status(c);
  EXPECT_EQ(of.size, 1u);
  EXPECT_FALSE(co_await fs::exists(a));
  co_await fs::create_hard_link(c, a);
  const fs::file_status linked = co_await fs::status(a);
  EXPECT_EQ(linked.inode, of.inode);
  EXPECT_EQ(linked.links, 2u);
  EXPECT_TRUE(co_await fs::remove(a));
  EXPECT_FALSE(co_await fs::remove(a));
  EXPECT_TRUE(co_await fs::remove(in.directory("empty")));
  in.file("full/file");
  const auto full = co_await as_result(fs::remove(in.at("full")));
  EXPECT_EQ(full.error(), std::errc::directory_not_empty);
}

WEFT_TEST("paths: directories are made, also those above") {
  const test::temporary_tree in;
  EXPECT_TRUE(co_await fs::create_directory(in.at("a"), 0700));
  EXPECT_FALSE(co_await fs::create_directory(in.at("a")));
  const fs::file_status of = co_await fs::status(in.at("a"));
  EXPECT_EQ(of.permissions, 0700u);
  const auto too_deep = co_await as_result(fs::create_directory(in.at("b/c")));
  EXPECT_EQ(too_deep.error(), std::errc::no_such_file_or_directory);
  EXPECT_TRUE(co_await fs::create_directories(in.at("b//c/d/")));
  EXPECT_FALSE(co_await fs::create_directories(in.at("b/c/d")));
  EXPECT_TRUE(co_await fs::exists(in.at("b/c/d")));
  const std::string file = in.file("file");
  const auto in_the_way = co_await as_result(fs::create_directory(file));
  EXPECT_EQ(in_the_way.error(), std::errc::file_exists);
  co_await fs::create_symlink("nowhere", in.at("dangles"));
  const auto dangles = co_await as_result(fs::create_directory(in.at("dangles")));
  EXPECT_EQ(dangles.error(), std::errc::file_exists);
  const auto dangle = co_await as_result(fs::create_directories(in.at("dangles")));
  EXPECT_EQ(dangle.error(), std::errc::file_exists);
  const auto below_a_file = co_await as_result(fs::create_directories(file + "/a/b"));
  EXPECT_EQ(below_a_file.error(), std::errc::not_a_directory);
  const auto nothing = co_await as_result(fs::create_directories(""));
  EXPECT_EQ(nothing.error(), std::errc::no_such_file_or_directory);
}

WEFT_TEST("paths: permissions and times are set") {
  const test::temporary_tree in;
  const std::string file = in.file("a");
  co_await fs::permissions(file, 0600);
  const fs::file_time modified{1'234'567'890'123'456'789ns}, accessed{-1'500'000'000ns};  // before 1970, too
  co_await fs::set_times({.accessed = accessed, .modified = modified}, file);
  fs::file_status of = co_await fs::status(file);
  EXPECT_EQ(of.permissions, 0600u);
  EXPECT_EQ(of.modified, modified);
  EXPECT_EQ(of.accessed, accessed);
  co_await fs::set_times({.modified = accessed}, file);
  of = co_await fs::status(file);
  EXPECT_EQ(of.modified, accessed);
  EXPECT_EQ(of.accessed, accessed) << "what is not given stays";
}

WEFT_TEST("paths: a failure names the operation and the path, and is no throw") {
  const test::temporary_tree in;
  const std::string missing = in.at("missing");
  const auto failed = co_await as_result(fs::status(missing));
  EXPECT_EQ(failed.error(), std::errc::no_such_file_or_directory);
  try {
    std::rethrow_exception(failed.exception());
  } catch (const weft::error& failure) {
    EXPECT_EQ(std::string{failure.what()}, "stat " + missing + ": No such file or directory");
  }
}

WEFT_TEST("paths: one with a NUL in it is refused, not cut") {
  const test::temporary_tree in;
  const std::string file = in.file("a"), cut = file + std::string("\0b", 2);
  const auto status = co_await as_result(fs::status(cut));
  EXPECT_EQ(status.error(), std::errc::invalid_argument);
  const auto to = co_await as_result(fs::rename(file, cut));
  EXPECT_EQ(to.error(), std::errc::invalid_argument);
  const auto removed = co_await as_result(fs::remove_all(cut));
  EXPECT_EQ(removed.error(), std::errc::invalid_argument);
  auto all = fs::directory(cut);
  const auto listed = co_await as_result(all.next());
  EXPECT_EQ(listed.error(), std::errc::invalid_argument);
  const auto made = co_await as_result(fs::make_temporary_directory({.in = in.path(), .prefix = {"a\0b", 3}}));
  EXPECT_EQ(made.error(), std::errc::invalid_argument);
  EXPECT_TRUE(co_await fs::exists(file));
}

TEST(paths, by_plain_threads_and_fibers) {
  const test::temporary_tree in;
  EXPECT_TRUE(sync_wait(fs::create_directory(in.at("a"))));
  EXPECT_EQ(sync_wait(names_in({}, in.path())), names{"a"});
  auto body = [&](weft::scope& s) -> task<> {
    auto fiber = s.go([&] {
      EXPECT_TRUE(weft::await(fs::exists(in.at("a"))));
      auto all = fs::directory(in.path());
      EXPECT_EQ(weft::await(all.next())->path, "a");
      EXPECT_EQ(weft::await(fs::remove_all(in.at("a"))), 1u);
    });
    co_await std::move(fiber);
  };
  sync_wait(weft::with_scope(body));
  EXPECT_FALSE(sync_wait(fs::exists(in.at("a"))));
}

// ---- what lies in directories -----------------------------------------------------------------------------------------------

WEFT_TEST("directory: its entries, each with its kind and inode") {
  const test::temporary_tree in;
  in.file("file");
  in.directory("sub");
  in.file("sub/below");
  co_await fs::create_symlink("sub", in.at("link"));
  ::mkfifo(in.at("fifo").c_str(), 0600);
  std::map<std::string, fs::file_kind> found;
  for (auto all = fs::directory(in.path()); auto* one = co_await all.next();) {
    found[one->path] = one->kind;
    EXPECT_EQ(one->name(), one->path);
    const fs::file_status of = co_await fs::symlink_status(in.at(one->path));
    EXPECT_EQ(one->inode, of.inode);
  }
  const std::map<std::string, fs::file_kind> expected{{"file", fs::file_kind::regular},
                                                      {"sub", fs::file_kind::directory},
                                                      {"link", fs::file_kind::symlink},
                                                      {"fifo", fs::file_kind::fifo}};
  EXPECT_EQ(found, expected);
}

WEFT_TEST("directory: one of thousands comes whole") {
  const test::temporary_tree in;
  names expected;
  for (int i = 0; i != 3000; ++i) {
    const std::string name = "a-name-that-takes-some-room-" + std::to_string(i);
    expected.insert(name);
    ::close(::open(in.at(name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  EXPECT_EQ(co_await names_in({}, in.path()), expected);
  EXPECT_EQ(co_await fs::remove_all(in.path()), 3001u);
}

WEFT_TEST("directory: an empty one, a missing one, a file") {
  const test::temporary_tree in;
  EXPECT_EQ(co_await names_in({}, in.path()), names{});
  EXPECT_EQ(co_await names_in({.recursive = true}, in.path()), names{});
  auto missing = fs::directory(in.at("missing"));
  const auto none = co_await as_result(missing.next());
  EXPECT_EQ(none.error(), std::errc::no_such_file_or_directory);
  auto file = fs::directory(in.file("file"));
  const auto no_directory = co_await as_result(file.next());
  EXPECT_EQ(no_directory.error(), std::errc::not_a_directory);
}

WEFT_TEST("directory: all that is below, a directory before what lies in it, and links not followed") {
  const test::temporary_tree in;
  for (const char* one : {"a/1", "a/b/2", "a/b/c/3", "d/4", "5"}) in.file(one);
  in.directory("e/f");
  co_await fs::create_symlink(in.at("a"), in.at("d/link"));
  const names expected{"a", "a/1", "a/b", "a/b/2", "a/b/c", "a/b/c/3", "d", "d/4", "d/link", "5", "e", "e/f"};
  names found;
  for (auto all = fs::directory({.recursive = true}, in.path()); auto* one = co_await all.next();) {
    const std::size_t slash = one->path.rfind('/');
    if (slash != std::string::npos) {
      EXPECT_TRUE(found.contains(one->path.substr(0, slash)));
      EXPECT_EQ(one->name(), one->path.substr(slash + 1));
    }
    found.insert(one->path);
  }
  EXPECT_EQ(found, expected);
}

WEFT_TEST("directory: links are followed where that is asked for, and in no circle") {
  const test::temporary_tree in, elsewhere;
  in.file("a/1");
  elsewhere.file("2");
  co_await fs::create_symlink(elsewhere.path(), in.at("a/out"));
  co_await fs::create_symlink("..", in.at("a/up"));
  co_await fs::create_symlink("nowhere", in.at("dangles"));
  const names expected{"a", "a/1", "a/out", "a/out/2", "a/up", "dangles"};
  EXPECT_EQ(co_await names_in({.recursive = true, .follow_symlinks = true}, in.path()), expected);
}

WEFT_TEST("directory: a tree that is deeper than descriptors and paths may be") {
  const test::temporary_tree in;
  constexpr int depth = 1200;
  int at = ::open(in.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i != depth; ++i) {
    ::mkdirat(at, "deeper", 0700);
    ::mkdirat(at, "beside", 0700);
    const int below = ::openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(std::exchange(at, below));
  }
  ::close(at);
  const std::size_t before = test::open_descriptors();
  std::size_t most = 0;
  int seen = 0;
  for (auto all = fs::directory({.recursive = true}, in.path()); co_await all.next() != nullptr; ++seen)
    if (seen % 100 == 0) most = std::max(most, test::open_descriptors());
  EXPECT_EQ(seen, 2 * depth);
  EXPECT_LE(most, before + 32);
  EXPECT_EQ(co_await fs::remove_all(in.path()), 2U * depth + 1);
}

WEFT_TEST("directory: what was moved away while it was gone through leads nowhere else") {
  const test::temporary_tree in;
  std::string deepest = "tree";
  for (int i = 0; i != 40; ++i) deepest += "/d";  // more than are kept open
  in.directory(deepest);
  for (int i = 0; i != 2000; ++i)
    ::close(::open(in.at(deepest + "/" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  in.file("beside");
  auto all = fs::directory({.recursive = true}, in.at("tree"));
  for (int i = 0; i != 41; ++i) static_cast<void>(co_await all.next());  // now it reads the deepest one
  co_await fs::rename(in.at("tree/d/d"), in.at("moved"));
  std::error_code ended;
  try {
    while (auto* one = co_await all.next()) EXPECT_NE(one->name(), "beside");
  } catch (const weft::error& failure) {
    ended = failure.code();
  }
  EXPECT_EQ(ended.value(), ESTALE);
}

WEFT_TEST("directory: its descriptors are closed wherever it is left") {
  const test::temporary_tree in;
  for (const char* one : {"a/1", "a/b/2", "a/b/c/3"}) in.file(one);
  co_await fs::exists(in.path());  // the pool has its thread
  const std::size_t before = test::open_descriptors();
  for (int left_after = 0; left_after != 7; ++left_after) {
    auto all = fs::directory({.recursive = true}, in.path());
    for (int i = 0; i != left_after; ++i) static_cast<void>(co_await all.next());
  }
  {
    [[maybe_unused]] const auto never_begun = fs::directory(in.path());
  }
  try {
    for (auto all = fs::directory(in.path()); co_await all.next() != nullptr;) throw 1;
  } catch (int) {
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

WEFT_TEST("directory: a stop ends it between two batches") {
  const test::temporary_tree in;
  in.file("a");
  const std::size_t before = test::open_descriptors();
  weft::stop_source source;
  auto work = [&]() -> task<int> {
    auto all = fs::directory(in.path());
    static_cast<void>(co_await all.next());
    source.request_stop();
    static_cast<void>(co_await all.next());
    co_return 1;
  };
  const auto ended = co_await as_result(weft::with_stop(source.token(), work));
  EXPECT_TRUE(ended.is_stopped());
  EXPECT_EQ(test::open_descriptors(), before);
}

// ---- trees that are removed -------------------------------------------------------------------------------------------------

WEFT_TEST("remove_all: a tree, a file, a link, nothing") {
  const test::temporary_tree in, elsewhere;
  const std::string kept = elsewhere.file("kept");
  for (const char* one : {"t/a/1", "t/a/b/2", "t/c/3", "t/4"}) in.file(one);
  in.directory("t/empty/also");
  co_await fs::create_symlink(elsewhere.path(), in.at("t/a/link"));
  EXPECT_EQ(co_await fs::remove_all(in.at("t")), 11u);
  EXPECT_EQ(co_await fs::remove_all(in.at("t")), 0u);
  EXPECT_EQ(co_await fs::remove_all(in.file("file")), 1u);
  co_await fs::create_symlink(elsewhere.path(), in.at("link"));
  EXPECT_EQ(co_await fs::remove_all(in.at("link")), 1u);
  EXPECT_EQ(co_await names_in({}, in.path()), names{});
  EXPECT_TRUE(co_await fs::exists(kept));
}

// The system goes through a link where a slash, or a dot, comes behind it.
WEFT_TEST("remove_all: a path that ends in a slash or a dot leads through no link") {
  const test::temporary_tree in, elsewhere;
  const std::string link = in.at("link");
  std::string kept = elsewhere.file("below/above/kept");
  co_await fs::create_symlink(elsewhere.at("below/above"), link);  // so what "link/.." is, is this test's, too
  constexpr const char* ends[] = {"/", "//", "/.", "/./", "/..", "/../"};
  for (const char* const end : ends) {
    const auto refused = co_await as_result(fs::remove_all(link + end));
    EXPECT_EQ(refused.error(), end[1] == '.' ? std::errc::invalid_argument : std::errc::not_a_directory) << end;
    EXPECT_TRUE(co_await fs::exists(kept)) << end;
    kept = elsewhere.file("below/above/kept");
  }
  const auto file_refused = co_await as_result(fs::remove_all(in.file("file") + "/"));
  EXPECT_EQ(file_refused.error(), std::errc::not_a_directory);
  in.file("t/a/1");
  const auto dots_refused = co_await as_result(fs::remove_all(in.at("t/.")));
  EXPECT_EQ(dots_refused.error(), std::errc::invalid_argument);
  EXPECT_TRUE(co_await fs::exists(in.at("t/a/1")));
  EXPECT_EQ(co_await fs::remove_all(in.at("t//")), 3u);
  const names left{"file", "link"};
  EXPECT_EQ(co_await names_in({}, in.path()), left);
  const auto nothing = co_await as_result(fs::remove_all(""));
  EXPECT_EQ(nothing.value(), 0u);
}

// A thread exchanges a directory and a link to another tree, again and again, while the first tree is removed.
WEFT_TEST("remove_all: who puts links into the place of directories leads it nowhere else") {
  const test::temporary_tree elsewhere;
  names kept;
  for (int i = 0; i != 20; ++i) {
    elsewhere.file("kept/" + std::to_string(i));
    kept.insert(std::to_string(i));
  }
  for (int round = 0; round != test::rounds(200); ++round) {
    const test::temporary_tree in;
    for (int i = 0; i != 10; ++i) in.file("tree/swapped/" + std::to_string(i));
    co_await fs::create_symlink(elsewhere.at("kept"), in.at("link"));
    std::atomic<bool> over{false};
    std::jthread swaps{[&] {
      while (!over)
        ::renameat2(AT_FDCWD, in.at("tree/swapped").c_str(), AT_FDCWD, in.at("link").c_str(), RENAME_EXCHANGE);
    }};
    const auto ended = co_await as_result(fs::remove_all(in.at("tree")));
    over = true;
    EXPECT_TRUE(ended.has_value() || ended.error()) << "it may fail, as the tree has changed";
    EXPECT_EQ(co_await names_in({}, elsewhere.at("kept")), kept);
  }
}

WEFT_TEST("remove_all: a stop comes between two batches, and leaves a part") {
  const test::temporary_tree in;
  for (int i = 0; i != 2000; ++i) ::close(::open(in.at("f" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY, 0600));
  weft::stop_source source;
  auto removes = [&]() -> task<> { static_cast<void>(co_await fs::remove_all(in.path())); };
  std::jthread stopper{[&] {
    test::until(
        [&] { return ::access(in.at("f0").c_str(), F_OK) != 0 || ::access(in.at("f1999").c_str(), F_OK) != 0; });
    source.request_stop();
  }};
  const auto ended = co_await as_result(weft::with_stop(source.token(), removes));
  stopper.join();
  EXPECT_TRUE(ended.is_stopped() || ended.has_value());
  EXPECT_EQ(::access(in.path().c_str(), F_OK) != 0, ended.has_value());
}

// ---- temporary directories --------------------------------------------------------------------------------------------------

WEFT_TEST("temporary_directory: is its maker's alone, and goes with what is in it") {
  const test::temporary_tree in;
  std::string path;
  {
    const fs::temporary_directory one = co_await fs::make_temporary_directory({.in = in.path(), .prefix = "mine-"});
    path = one.path();
    EXPECT_EQ(path.rfind(in.path() + "/mine-", 0), 0u);
    const fs::file_status of = co_await fs::status(path);
    EXPECT_EQ(of.permissions, 0700u);
    co_await fs::create_directories(path + "/a/b");
  }
  EXPECT_FALSE(co_await fs::exists(path));
}

WEFT_TEST("temporary_directory: removed by an await, moved, released") {
  const test::temporary_tree in;
  fs::temporary_directory one = co_await fs::make_temporary_directory({.in = in.path()});
  fs::temporary_directory other = co_await fs::make_temporary_directory({.in = in.path()});
  const std::string first = one.path(), second = other.path();
  one = std::move(other);
  EXPECT_FALSE(co_await fs::exists(first));
  EXPECT_EQ(one.path(), second);
  co_await one.remove();
  EXPECT_EQ(one.path(), "");
  EXPECT_FALSE(co_await fs::exists(second));
  co_await one.remove();  // nothing is left to do
  std::string kept;
  {
    fs::temporary_directory third = co_await fs::make_temporary_directory({.in = in.path()});
    kept = third.release();
  }
  EXPECT_TRUE(co_await fs::exists(kept));
}

WEFT_TEST("temporary_directory: lies where the environment says") {
  const fs::temporary_directory one = co_await fs::make_temporary_directory();
  const char* const by_environment = std::getenv("TMPDIR");
  const std::string where = by_environment != nullptr && *by_environment != '\0' ? by_environment : "/tmp";
  EXPECT_EQ(one.path().rfind(where + "/weft-", 0), 0u);
}

TEST(temporary_directory, is_not_removed_by_a_forked_copy) {
  const test::temporary_tree in;
  auto one = std::make_unique<fs::temporary_directory>(sync_wait(fs::make_temporary_directory({.in = in.path()})));
  const pid_t child = ::fork();
  if (child == 0) {
    one.reset();
    std::_Exit(0);
  }
  int how = 0;
  ::waitpid(child, &how, 0);
  EXPECT_EQ(::access(one->path().c_str(), F_OK), 0);
#if !defined(WEFT_TEST_TSAN)  // which stands no threads in a forked child
  const pid_t other = ::fork();
  if (other == 0) {
    ::alarm(60);
    sync_wait(one->remove());
    std::_Exit(0);
  }
  ::waitpid(other, &how, 0);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(::access(one->path().c_str(), F_OK), 0);
#endif
}

}  // namespace
