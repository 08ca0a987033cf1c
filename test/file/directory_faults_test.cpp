// Directories where the system refuses: each call that is made, the first, the second and so on, fails with each error; and reads of
// directories that give little at a time. Nothing is left open, and what is said to be done was done.
#include <weft/directory.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <initializer_list>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "file/temporary_tree.hpp"
#include "net/open_descriptors.hpp"
#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::task;
namespace fs = weft::fs;

enum class call : unsigned char { none, openat, getdents64, unlinkat, fstat, fstatat, statx, mkdir, mkdtemp };
constexpr int short_read = -1;  // in place of an error number

// The calls of `at` that come after `before` others, `count` of them, fail with `error`. Calls are made on threads of the pool.
std::atomic<call> at{call::none};
std::atomic<int> error{0}, before{0}, count{0}, seen{0};
std::atomic<bool> knows_no_kinds{false};  // what is read of a directory says nothing of kinds

struct injection {
  injection(call where, int number, int after, int times = 1) {
    error = number, before = after, count = times, seen = 0;
    at = where;
  }
  injection(const injection&) = delete;
  ~injection() { at = call::none; }
  static bool has_struck() { return seen > before; }
};

int outcome_of(call which) {
  if (at != which) return 0;
  const int mine = seen++;
  return mine >= before && mine - before < count ? error.load() : 0;
}
template <class Call>
auto made(call which, Call real) -> decltype(real()) {
  const int refused = outcome_of(which);
  if (refused == 0) return real();
  errno = refused;
  return -1;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
int __real_openat(int from, const char* path, int flags, ...);
ssize_t __real_getdents64(int number, void* into, std::size_t size);
int __real_unlinkat(int from, const char* path, int flags);
int __real_fstat(int number, struct stat* into);
int __real_fstatat(int from, const char* path, struct stat* into, int flags);
int __real_statx(int from, const char* path, int flags, unsigned mask, struct statx* into);
int __real_mkdir(const char* path, mode_t mode);
char* __real_mkdtemp(char* pattern);

int __wrap_openat(int from, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  return made(call::openat, [&] { return __real_openat(from, path, flags, mode); });
}
ssize_t __wrap_getdents64(int number, void* into, std::size_t size) {
  const int refused = outcome_of(call::getdents64);
  if (refused > 0) return (errno = refused, -1);
  const ssize_t got = __real_getdents64(number, into, refused == short_read ? 64 : size);
  for (ssize_t i = 0; knows_no_kinds && i < got;) {
    auto* const one = reinterpret_cast<dirent64*>(static_cast<char*>(into) + i);  // NOLINT: so it lies there
    one->d_type = DT_UNKNOWN;
    i += one->d_reclen;
  }
  return got;
}
int __wrap_unlinkat(int from, const char* path, int flags) {
  return made(call::unlinkat, [&] { return __real_unlinkat(from, path, flags); });
}
int __wrap_fstat(int number, struct stat* into) {
  return made(call::fstat, [&] { return __real_fstat(number, into); });
}
int __wrap_fstatat(int from, const char* path, struct stat* into, int flags) {
  return made(call::fstatat, [&] { return __real_fstatat(from, path, into, flags); });
}
int __wrap_statx(int from, const char* path, int flags, unsigned mask, struct statx* into) {
  return made(call::statx, [&] { return __real_statx(from, path, flags, mask, into); });
}
int __wrap_mkdir(const char* path, mode_t mode) {
  return made(call::mkdir, [&] { return __real_mkdir(path, mode); });
}
char* __wrap_mkdtemp(char* pattern) {
  if (const int refused = outcome_of(call::mkdtemp); refused != 0) return (errno = refused, nullptr);
  return __real_mkdtemp(pattern);
}
}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using names = std::set<std::string>;

void make_tree(const test::temporary_tree& in) {
  for (const char* one : {"t/a/1", "t/a/b/2", "t/c/3", "t/4"}) in.file(one);
}
const names all_of_tree{"a", "a/1", "a/b", "a/b/2", "c", "c/3", "4"};

task<names> names_in(std::string path) {
  names found;
  for (auto all = fs::directory({.recursive = true}, path); auto* one = co_await all.next();) found.insert(one->path);
  co_return found;
}

WEFT_TEST("directory_faults: a read that gives a name or two at a time loses none") {
  const test::temporary_tree in;
  make_tree(in);
  const injection small{call::getdents64, short_read, 0, 1'000'000};
  EXPECT_EQ(co_await names_in(in.at("t")), all_of_tree);
  EXPECT_EQ(co_await fs::remove_all(in.at("t")), all_of_tree.size() + 1);
}

WEFT_TEST("directory_faults: a file system that says nothing of kinds is asked for them") {
  const test::temporary_tree in;
  make_tree(in);
  knows_no_kinds = true;
  EXPECT_EQ(co_await names_in(in.at("t")), all_of_tree);
  auto all = fs::directory(in.at("t/a/b"));
  EXPECT_EQ((co_await all.next())->kind, fs::file_kind::regular);
  EXPECT_EQ(co_await fs::remove_all(in.at("t")), all_of_tree.size() + 1);
  knows_no_kinds = false;
}

WEFT_TEST("directory_faults: a list that fails leaves nothing open, and is never cut without a word") {
  const test::temporary_tree in;
  make_tree(in);
  co_await fs::exists(in.path());  // the pool has its thread
  const std::size_t open_before = test::open_descriptors();
  for (const call where : {call::openat, call::getdents64, call::fstat})
    for (const int refused : {EMFILE, EACCES, EIO, ENOMEM, ENFILE}) {
      int after = 0;
      for (bool has_struck = true; has_struck; ++after) {
        const injection one{where, refused, after};
        const auto got = co_await as_result(names_in(in.at("t")));
        has_struck = injection::has_struck();
        EXPECT_EQ(got.error(), has_struck ? std::error_code(refused, std::generic_category()) : std::error_code{});
        EXPECT_TRUE(has_struck || got.value() == all_of_tree);
        EXPECT_EQ(test::open_descriptors(), open_before);
      }
      EXPECT_GE(after, 4);
    }
}

WEFT_TEST("directory_faults: a read that is interrupted goes on") {
  const test::temporary_tree in;
  make_tree(in);
  for (int after = 0; after != 8; ++after) {
    const injection one{call::getdents64, EINTR, after, 3};
    EXPECT_EQ(co_await names_in(in.at("t")), all_of_tree);
  }
}

// So does a directory below that has become a link, or was removed, between its name was read and it was entered.
WEFT_TEST(
    "directory_faults: what is no directory any more is passed over, and what is denied where that is asked for") {
  const test::temporary_tree in;
  make_tree(in);
  for (const int gone : {ENOENT, ENOTDIR, ELOOP, EACCES}) {
    const injection one{call::openat, gone, 1};  // the first of the two below
    names found;
    for (auto all = fs::directory({.recursive = true, .skip_denied = true}, in.at("t"));
         auto* it = co_await all.next();)
      found.insert(it->path);
    EXPECT_TRUE(injection::has_struck());
    EXPECT_TRUE(found.contains("a") && found.contains("c") && found.contains("4"));
    EXPECT_LT(found.size(), all_of_tree.size());
  }
}

WEFT_TEST("directory_faults: a removal that fails leaves nothing open, and goes on when it is asked again") {
  const test::temporary_tree in;
  co_await fs::exists(in.path());
  const std::size_t open_before = test::open_descriptors();
  for (const call where : {call::openat, call::getdents64, call::fstat, call::unlinkat})
    for (const int refused : {EACCES, EIO, EBUSY, EMFILE}) {
      for (int after = 0;; ++after) {
        make_tree(in);
        bool has_struck;
        {
          const injection one{where, refused, after};
          const auto got = co_await as_result(fs::remove_all(in.at("t")));
          has_struck = injection::has_struck();
          EXPECT_EQ(got.error(), has_struck ? std::error_code(refused, std::generic_category()) : std::error_code{});
        }
        EXPECT_EQ(test::open_descriptors(), open_before);
        static_cast<void>(co_await fs::remove_all(in.at("t")));
        EXPECT_FALSE(co_await fs::exists(in.at("t")));
        if (!has_struck) break;
      }
    }
}

WEFT_TEST("directory_faults: what somebody else removes first is no failure") {
  const test::temporary_tree in;
  for (int after = 0; after != 8; ++after) {
    make_tree(in);
    bool has_struck;
    {
      const injection one{call::unlinkat, ENOENT, after};
      const auto got = co_await as_result(fs::remove_all(in.at("t")));
      has_struck = injection::has_struck();
      EXPECT_TRUE(got.has_value() || got.error() == std::errc::directory_not_empty);
    }
    static_cast<void>(co_await fs::remove_all(in.at("t")));
    EXPECT_TRUE(has_struck);
  }
}

WEFT_TEST("directory_faults: a full disk, and one that gives no more descriptors") {
  const test::temporary_tree in;
  {
    const injection full{call::mkdir, ENOSPC, 0};
    const auto made = co_await as_result(fs::create_directory(in.at("a")));
    EXPECT_EQ(made.error(), std::errc::no_space_on_device);
  }
  {
    const injection full{call::mkdir, ENOSPC, 2};  // the parents first: two tries upwards
    const auto made = co_await as_result(fs::create_directories(in.at("a/b/c")));
    EXPECT_EQ(made.error(), std::errc::no_space_on_device);
  }
  {
    const injection full{call::mkdtemp, ENOSPC, 0};
    const auto made = co_await as_result(fs::make_temporary_directory({.in = in.path()}));
    EXPECT_EQ(made.error(), std::errc::no_space_on_device);
  }
  {
    const injection broken{call::statx, EIO, 0};
    const auto asked = co_await as_result(fs::exists(in.path()));
    EXPECT_EQ(asked.error(), std::errc::io_error);
  }
}

}  // namespace
