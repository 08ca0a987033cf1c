// Files: what is written and read, how they are opened, locked and replaced; on a disk's file system and in memory. In runtimes on
// either back end, too.
//
// Long because each operation is tried on a disk's file system and in memory, cached and not.
#include <weft/file.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/io.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/timed.hpp>

#include "file/directories.hpp"
#include "net/open_descriptors.hpp"
#include "support/in_runtime.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::own_directory;
using test::pattern;
using test::text_in;
using weft::as_result;
using weft::file;
using weft::task;

static_assert(weft::io::reader<weft::file_reader> && weft::io::writer<weft::file_writer>);
static_assert(std::is_trivially_destructible_v<weft::file_options> &&
              std::is_trivially_destructible_v<weft::lock_range>);

constexpr weft::file_options to_make{.write = true, .create = true, .truncate = true};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }
std::span<std::byte> room(std::string& text) { return std::as_writable_bytes(std::span{text}); }

task<std::string> read_some(const file& from, std::uint64_t offset, std::size_t size) {
  std::string text(size, '?');
  text.resize(co_await from.read_at(offset, room(text)));
  co_return text;
}

// What was read before must come from the disk once more, as far as the system lets go of it.
void forget(const file& of) {
  ::fsync(of.native_handle());
  ::posix_fadvise(of.native_handle(), 0, 0, POSIX_FADV_DONTNEED);
}

WEFT_TEST("file: what is written is read, wherever it is") {
  for (const std::string& place : test::places_for_files()) {
    const own_directory in{place};
    const std::string text = pattern(3'000'000);
    file both = co_await file::open(to_make, in.at("a"));
    EXPECT_EQ(co_await both.size(), 0U);
    EXPECT_EQ(co_await read_some(both, 0, 10), "");
    co_await both.write_at(0, text);
    EXPECT_EQ(co_await both.size(), text.size());
    for (const bool is_cached : {true, false}) {
      if (!is_cached) forget(both);
      EXPECT_TRUE(co_await read_some(both, 0, text.size()) == text);
      EXPECT_TRUE(co_await read_some(both, 0, text.size() + 1) == text);
      EXPECT_TRUE(co_await read_some(both, 12'345, 2'000'000) == text.substr(12'345, 2'000'000));
    }
    EXPECT_EQ(co_await read_some(both, text.size(), 1), "");
    EXPECT_EQ(co_await read_some(both, text.size() + 1000, 1), "");
    EXPECT_EQ(co_await read_some(both, 0, 0), "");
    co_await both.write_at(text.size() + 5, "behind");
    EXPECT_EQ(co_await read_some(both, text.size(), 100), (std::string{"\0\0\0\0\0behind", 11}));
    EXPECT_EQ(co_await both.write_some_at(3, bytes("xyz")), 3U);
    EXPECT_EQ(co_await both.write_some_at(3, {}), 0U);
    co_await both.write_at(9, std::string_view{});
    EXPECT_EQ(co_await read_some(both, 2, 5), text.substr(2, 1) + "xyz" + text.substr(6, 1));
    const std::uint64_t far = ~std::uint64_t{0};
    EXPECT_EQ((co_await as_result(both.write_at(far, "x"))).error(), std::errc::file_too_large);
    EXPECT_EQ((co_await as_result(read_some(both, far, 1))).error(), std::errc::file_too_large);
    co_await both.close();
    EXPECT_FALSE(both.is_open());
  }
}

WEFT_TEST("file: several parts are one behind the other") {
  const own_directory in;
  file both = co_await file::open(to_make, in.at("a"));
  std::minstd_rand random{7};
  std::vector<std::string> parts;
  std::vector<std::span<const std::byte>> to_write;
  std::string all;
  for (int i = 0; i != 100; ++i) parts.push_back(pattern(random() % 5 == 0 ? 0 : random() % 50'000, random()));
  for (const std::string& each : parts) {
    to_write.push_back(bytes(each));
    all += each;
  }
  co_await both.write_at(11, to_write);
  EXPECT_TRUE(co_await read_some(both, 11, all.size() + 1) == all);
  for (const bool is_cached : {true, false}) {
    if (!is_cached) forget(both);
    std::vector<std::string> got;
    std::vector<std::span<std::byte>> to_read;
    for (const std::string& each : parts) got.emplace_back(each.size(), '?');
    got.emplace_back(10, '?');
    for (std::string& each : got) to_read.push_back(room(each));
    EXPECT_EQ(co_await both.read_at(11, to_read), all.size());
    EXPECT_EQ(got.back(), std::string(10, '?'));
    got.pop_back();
    EXPECT_TRUE(got == parts);
  }
  EXPECT_EQ(co_await both.read_at(0, std::span<const std::span<std::byte>>{}), 0U);
}

WEFT_TEST("file: what it is opened for, and what makes no sense") {
  const own_directory in;
  const std::string path = in.at("a");
  EXPECT_EQ((co_await as_result(file::open(path))).error(), std::errc::no_such_file_or_directory);
  EXPECT_EQ((co_await as_result(file::open({.write = true}, path))).error(), std::errc::no_such_file_or_directory);
  for (const weft::file_options wrong :
       {weft::file_options{.read = false}, weft::file_options{.create = true}, weft::file_options{.truncate = true},
        weft::file_options{.append = true}, weft::file_options{.write = true, .exclusive = true}})
    EXPECT_EQ((co_await as_result(file::open(wrong, path))).error(), std::errc::invalid_argument);
  EXPECT_EQ((co_await as_result(file::open(std::string_view{"a\0b", 3}))).error(), std::errc::invalid_argument);
  EXPECT_EQ((co_await as_result(file::open({.write = true}, in.path()))).error(), std::errc::is_a_directory);
  {
    file folder = co_await file::open(in.path());
    EXPECT_EQ((co_await as_result(read_some(folder, 0, 1))).error(), std::errc::is_a_directory);
  }
  {
    const file made =
        co_await file::open({.write = true, .create = true, .exclusive = true, .permissions = 0640}, path);
    EXPECT_EQ((co_await made.stat()).permissions & ~0640U, 0U);
    co_await made.write_at(0, "abc");
    EXPECT_NE(::fcntl(made.native_handle(), F_GETFD) & FD_CLOEXEC, 0);
  }
  const weft::file_options exclusive{.write = true, .create = true, .exclusive = true};
  EXPECT_EQ((co_await as_result(file::open(exclusive, path))).error(), std::errc::file_exists);
  {
    const file reads = co_await file::open(path);
    EXPECT_EQ(co_await read_some(reads, 0, 9), "abc");
    EXPECT_EQ((co_await as_result(reads.write_at(0, "x"))).error(), std::errc::bad_file_descriptor);
    const file writes = co_await file::open({.read = false, .write = true}, path);
    EXPECT_EQ((co_await as_result(read_some(writes, 0, 1))).error(), std::errc::bad_file_descriptor);
  }
  const file empties = co_await file::open(to_make, path);
  EXPECT_EQ(co_await empties.size(), 0U);
  const auto failed = co_await as_result(file::open(in.at("none")));
  try {
    static_cast<void>(failed.value());
  } catch (const weft::error& why) {
    EXPECT_NE(std::string{why.what()}.find("open a file"), std::string::npos) << why.what();
    EXPECT_NE(std::string{why.what()}.find("/none"), std::string::npos) << why.what();
  }
}

WEFT_TEST("file: one that is not open fails with closed") {
  file none;
  std::string text(3, '?');
  EXPECT_EQ(none.native_handle(), -1);
  EXPECT_EQ(none.release(), -1);
  EXPECT_EQ((co_await as_result(none.read_at(0, room(text)))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.write_at(0, "x"))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.append("x"))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.sync())).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.size())).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.truncate(1))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.lock())).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.close())).error(), weft::errc::closed);
}

WEFT_TEST("file: appends of several do not mix") {
  const own_directory in;
  const std::string path = in.at("log");
  {
    const file one = co_await file::open({.read = false, .write = true, .create = true}, path);
    const file other = co_await file::open({.write = true, .append = true}, path);
    const auto appends = [](const file& to, char what) -> task<> {
      for (int i = 0; i != 50; ++i) co_await to.append(std::string(1'000, what));
    };
    auto all = weft::when_all(appends(one, 'a'), appends(one, 'b'), appends(other, 'c'));
    co_await std::move(all);
  }
  const std::string text = text_in(path);
  EXPECT_EQ(text.size(), 150'000U);
  for (std::size_t at = 0; at < text.size(); at += 1'000)
    EXPECT_EQ(text.substr(at, 1'000), std::string(1'000, text[at])) << at;
}

WEFT_TEST("file: the whole of one is cut, synced and known") {
  for (const std::string& place : test::places_for_files()) {
    const own_directory in{place};
    const file one = co_await file::open(to_make, in.at("a"));
    co_await one.write_at(0, pattern(10'000));
    co_await one.sync();
    co_await one.sync_data();
    co_await one.truncate(100);
    EXPECT_EQ(co_await one.size(), 100U);
    co_await one.truncate(200);
    EXPECT_EQ(co_await read_some(one, 99, 1'000), pattern(100).substr(99) + std::string(100, '\0'));
    co_await one.allocate(1'000, 50'000);
    const weft::file_status known = co_await one.stat();
    struct stat by_system{};
    EXPECT_EQ(::fstat(one.native_handle(), &by_system), 0);
    EXPECT_EQ(known.size, 51'000U);
    EXPECT_EQ(known.allocated, static_cast<std::uint64_t>(by_system.st_blocks) * 512);
    EXPECT_GE(known.allocated, 50'000U);
    EXPECT_TRUE(known.is_regular);
    EXPECT_EQ(known.inode, by_system.st_ino);
    EXPECT_EQ(known.device, by_system.st_dev);
    EXPECT_EQ(known.links, 1U);
    EXPECT_EQ(known.user, by_system.st_uid);
    EXPECT_EQ(known.modified.time_since_epoch(),
              std::chrono::seconds{by_system.st_mtim.tv_sec} + std::chrono::nanoseconds{by_system.st_mtim.tv_nsec});
    co_await one.allocate(0, 0);
    EXPECT_EQ((co_await as_result(one.truncate(~std::uint64_t{0}))).error(), std::errc::file_too_large);
    EXPECT_EQ((co_await as_result(one.allocate(~std::uint64_t{0}, 1))).error(), std::errc::file_too_large);
  }
}

WEFT_TEST("file: a temporary one has no name") {
  const own_directory in;
  const file one = co_await file::temporary(in.path());
  EXPECT_EQ(in.entries(), 0U);
  co_await one.write_at(0, "abc");
  EXPECT_EQ(co_await read_some(one, 0, 9), "abc");
  EXPECT_EQ((co_await one.stat()).links, 0U);
  EXPECT_EQ((co_await as_result(file::temporary(in.at("none")))).error(), std::errc::no_such_file_or_directory);
}

WEFT_TEST("file: a descriptor is taken over, and given away") {
  const own_directory in;
  const std::size_t before = test::open_descriptors();
  const int number = ::open(in.at("a").c_str(), O_RDWR | O_CREAT, 0600);
  file one = file::adopt(number);
  EXPECT_EQ(one.native_handle(), number);
  EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
  co_await one.write_at(0, "abc");
  file moved = std::move(one);
  EXPECT_FALSE(one.is_open());  // NOLINT: what a move leaves
  EXPECT_EQ(moved.release(), number);
  EXPECT_FALSE(moved.is_open());
  EXPECT_EQ(::close(number), 0);
  EXPECT_THROW(file::adopt(number), weft::error);
  file other = co_await file::open(in.at("a")), another = co_await file::open(in.at("a"));
  other = std::move(another);
  co_await other.close();
  EXPECT_EQ(test::open_descriptors(), before);
}

WEFT_TEST("file: it is read and written as any stream") {
  const own_directory in;
  const file one = co_await file::open(to_make, in.at("a"));
  weft::file_writer to{one};
  {
    weft::io::buffered_writer out{to};
    for (int i = 0; i != 10'000; ++i) co_await out.print("line ", i, "\n");
    co_await out.flush();
  }
  EXPECT_EQ(to.position(), co_await one.size());
  weft::file_reader from{one};
  {
    weft::io::buffered_reader in_lines{from};
    int count = 0;
    auto lines = in_lines.lines();
    while (const std::string* const line = co_await lines.next()) EXPECT_EQ(*line, "line " + std::to_string(count++));
    EXPECT_EQ(count, 10'000);
  }
  const file copy = co_await file::open(to_make, in.at("b"));
  from.seek(0);
  weft::file_writer to_copy{copy};
  EXPECT_EQ(co_await weft::io::copy(from, to_copy), to.position());
  EXPECT_TRUE(text_in(in.at("a")) == text_in(in.at("b")));
}

WEFT_TEST("file: a lock keeps out who opens the file another time") {
  const own_directory in;
  const std::string path = in.at("a");
  const file one = co_await file::open(to_make, path), other = co_await file::open({.write = true}, path);
  {
    const weft::file_lock all = co_await one.lock();
    EXPECT_TRUE(all.is_held());
    EXPECT_FALSE(co_await other.try_lock());
    EXPECT_FALSE(co_await other.try_lock({.shared = true, .offset = 100, .size = 1}));
    const auto late = co_await as_result(weft::timeout(5ms, other.lock()));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
  }
  weft::file_lock front = co_await one.lock({.offset = 0, .size = 10});
  const weft::file_lock behind = co_await other.lock({.offset = 10});
  EXPECT_FALSE(co_await other.try_lock({.offset = 9, .size = 1}));
  const auto gives = [&]() -> task<> {
    co_await weft::sleep_for(3ms);
    front.unlock();
    EXPECT_FALSE(front.is_held());
  };
  const auto waits = [&]() -> task<bool> { co_return (co_await other.lock({.offset = 9, .size = 1})).is_held(); };
  auto both = weft::when_all(gives(), waits());
  const auto [none, is_held] = co_await std::move(both);
  EXPECT_TRUE(is_held);
  std::optional<weft::file_lock> first = co_await one.try_lock({.shared = true, .offset = 0, .size = 5});
  std::optional<weft::file_lock> second = co_await other.try_lock({.shared = true, .offset = 0, .size = 5});
  EXPECT_TRUE(first && second);
  const file reads = co_await file::open(path);
  EXPECT_EQ((co_await as_result(reads.lock())).error(), std::errc::bad_file_descriptor);
}

WEFT_TEST("file: locks that are got by one file exclude each other, and each unlocks its own") {
  const own_directory in;
  const std::string path = in.at("a");
  const file one = co_await file::open(to_make, path), other = co_await file::open({.write = true}, path);
  {
    const weft::file_lock all = co_await one.lock();
    EXPECT_FALSE(co_await one.try_lock({.offset = 10, .size = 5}));
    EXPECT_FALSE(co_await one.try_lock({.shared = true, .offset = 10, .size = 5}));
    EXPECT_FALSE(co_await other.try_lock({.offset = 10, .size = 5}));
    auto again = one.lock({.offset = 10});
    const auto late = co_await as_result(weft::timeout(5ms, std::move(again)));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    EXPECT_FALSE(co_await other.try_lock());
  }
  // Readers: bytes are free when the last of them has unlocked those.
  weft::file_lock all = co_await one.lock({.shared = true});
  weft::file_lock front = co_await one.lock({.shared = true, .offset = 0, .size = 10});
  weft::file_lock middle = co_await one.lock({.shared = true, .offset = 5, .size = 10});
  weft::file_lock also = co_await one.lock({.shared = true, .offset = 5, .size = 10});
  const auto is_free = [&](std::uint64_t at) -> task<bool> {
    const std::optional<weft::file_lock> got = co_await other.try_lock({.offset = at, .size = 1});
    co_return got.has_value();
  };
  middle.unlock();
  EXPECT_FALSE(co_await is_free(12));
  all.unlock();
  EXPECT_FALSE(co_await is_free(0));
  EXPECT_FALSE(co_await is_free(14));
  EXPECT_TRUE(co_await is_free(15));
  front.unlock();
  EXPECT_TRUE(co_await is_free(4));
  EXPECT_FALSE(co_await is_free(5));
  {
    // One that the other file keeps out leaves what was there.
    const weft::file_lock behind = co_await other.lock({.offset = 20});
    EXPECT_FALSE(co_await one.try_lock({.shared = true}));
    EXPECT_FALSE(co_await is_free(5));
  }
  also.unlock();
  EXPECT_TRUE(co_await is_free(5));
  EXPECT_TRUE(co_await one.try_lock());
}

WEFT_TEST("file: direct reads and writes pass the page cache") {
  const own_directory in;
  const auto opened = co_await as_result(file::open({.write = true, .create = true, .direct = true}, in.at("a")));
  if (opened.error() == std::errc::invalid_argument) co_return;  // this file system has none
  const std::string path = in.at("a");
  const file one = co_await file::open({.write = true, .direct = true}, path);
  EXPECT_NE(::fcntl(one.native_handle(), F_GETFL) & O_DIRECT, 0) << "else it only looks so";
  weft::aligned_buffer buffer{std::size_t{64} * 1024};
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.bytes().data()) % 4096, 0U);
  const std::string text = pattern(buffer.size());
  std::copy_n(bytes(text).data(), text.size(), buffer.bytes().data());
  co_await one.write_at(0, buffer.bytes());
  co_await one.write_at(buffer.size(), buffer.bytes());
  weft::aligned_buffer got{2 * buffer.size() + 4096};
  EXPECT_EQ(co_await one.read_at(0, got.bytes()), 2 * buffer.size());
  EXPECT_TRUE(std::ranges::equal(got.bytes().first(buffer.size()), bytes(text)));
  if (one.alignment().offset != 0) {
    EXPECT_EQ(4096 % one.alignment().offset, 0U);
    const auto says = [](weft::result<std::size_t> how) {
      try {
        static_cast<void>(how.value());
      } catch (const weft::error& why) {
        EXPECT_EQ(why.code(), std::errc::invalid_argument);
        return std::string{why.what()};
      }
      return std::string{};
    };
    const auto has = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
    EXPECT_TRUE(has(says(co_await as_result(one.read_at(1, got.bytes()))), "offset"));
    EXPECT_TRUE(has(says(co_await as_result(one.read_at(0, got.bytes().first(1)))), "size"));
    EXPECT_TRUE(has(says(co_await as_result(one.read_at(0, got.bytes().subspan(1, 4096)))), "memory"));
  }
  EXPECT_EQ(::truncate(path.c_str(), 5'000), 0);
  EXPECT_EQ(co_await one.read_at(0, got.bytes()), 5'000U);
}

WEFT_TEST("file: whole files are read, written and replaced") {
  for (const std::string& place : test::places_for_files()) {
    const own_directory in{place};
    const std::string path = in.at("a"), text = pattern(300'000);
    co_await weft::write_file(path, text);
    EXPECT_TRUE(co_await weft::read_file(path) == text);
    co_await weft::write_file(path, "short", 0600);
    EXPECT_EQ(text_in(path), "short");
    EXPECT_EQ(::chmod(path.c_str(), 0604), 0);
    co_await weft::replace_file(path, text);
    EXPECT_TRUE(text_in(path) == text);
    struct stat known{};
    EXPECT_EQ(::stat(path.c_str(), &known), 0);
    EXPECT_EQ(known.st_mode & 07777U, 0604U);
    EXPECT_EQ(::chmod(path.c_str(), 07751), 0);
    co_await weft::replace_file(path, text);
    EXPECT_EQ(::stat(path.c_str(), &known), 0);
    EXPECT_EQ(known.st_mode & 07777U, 0751U) << "whoever writes owns it, and is not to lend that";
    co_await weft::replace_file(in.at("b"), "", 0600);
    EXPECT_EQ(::stat(in.at("b").c_str(), &known), 0);
    EXPECT_EQ(known.st_mode & 07777U, 0600U);
    EXPECT_EQ(::symlink(path.c_str(), in.at("link").c_str()), 0);
    co_await weft::replace_file(in.at("link"), "no link");
    EXPECT_EQ(text_in(in.at("link")), "no link");
    EXPECT_TRUE(text_in(path) == text);
    const std::string long_name(250, 'n');
    co_await weft::replace_file(in.at(long_name), "long");
    EXPECT_EQ(in.entries(), 4U) << "something was left";
    EXPECT_EQ((co_await as_result(weft::read_file(path, text.size() - 1))).error(), std::errc::file_too_large);
    EXPECT_TRUE(co_await weft::read_file(path, text.size()) == text);
    EXPECT_EQ((co_await as_result(weft::replace_file(in.at("none/b"), ""))).error(),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ((co_await as_result(weft::replace_file(in.at(""), ""))).error(), std::errc::invalid_argument);
    EXPECT_EQ((co_await as_result(weft::replace_file(in.path(), ""))).error(), std::errc::is_a_directory);
  }
  EXPECT_NE((co_await weft::read_file("/proc/self/status")).find("Pid:"), std::string::npos);
}

// What the kernel takes for one: the owner reads and writes, `user` reads, the mask is to read, and nobody else does anything.
std::string access_list_for(std::uint16_t user) {
  const std::uint32_t nobody = 0xffffffff;
  const struct {
    std::uint16_t tag, may;
    std::uint32_t id;
  } entries[] = {{1, 6, nobody}, {2, 4, user}, {4, 0, nobody}, {0x10, 4, nobody}, {0x20, 0, nobody}};
  const std::uint32_t version = 2;
  return std::string{reinterpret_cast<const char*>(&version), sizeof version} +
         std::string{reinterpret_cast<const char*>(entries), sizeof entries};
}

WEFT_TEST("file: a replacement gives nobody more rights") {
  constexpr const char* list_of = "system.posix_acl_access";
  constexpr gid_t group = 4242;
  struct stat known{};
  for (const std::string& place : test::places_for_files()) {
    const own_directory in{place};
    const std::string path = in.at("a");
    co_await weft::write_file(path, "old", 0640);
    const std::string list = access_list_for(4242);
    char found[100];
    if (::setxattr(path.c_str(), list_of, list.data(), list.size(), 0) == 0) {
      co_await weft::replace_file(path, "new");
      const ssize_t size = ::getxattr(path.c_str(), list_of, found, sizeof found);
      EXPECT_TRUE((std::string{found, static_cast<std::size_t>(std::max<ssize_t>(size, 0))} == list)) << size;
      EXPECT_EQ(::removexattr(path.c_str(), list_of), 0);
      // A directory whose files have a list by default.
      EXPECT_EQ(::setxattr(in.path().c_str(), "system.posix_acl_default", list.data(), list.size(), 0), 0);
      co_await weft::replace_file(path, "new");
      EXPECT_LT(::getxattr(path.c_str(), list_of, found, sizeof found), 0);
      EXPECT_EQ(::removexattr(in.path().c_str(), "system.posix_acl_default"), 0);
    }
    EXPECT_EQ(::chmod(path.c_str(), 0640), 0);
    if (::chown(path.c_str(), static_cast<uid_t>(-1), group) != 0) continue;  // this is no superuser
    co_await weft::replace_file(path, "new");
    EXPECT_EQ(::stat(path.c_str(), &known), 0);
    EXPECT_EQ(known.st_gid, group);
    EXPECT_EQ(known.st_mode & 07777U, 0640U);
    // By somebody who is not in that group.
    EXPECT_EQ(::chmod(in.path().c_str(), 0777), 0);
    EXPECT_EQ(::seteuid(65534), 0);
    const bool may = ::faccessat(AT_FDCWD, in.path().c_str(), W_OK | X_OK, AT_EACCESS) == 0;  // folders above, too
    const auto how = co_await as_result(weft::replace_file(path, "new"));
    EXPECT_EQ(::seteuid(0), 0);
    if (!may) continue;
    EXPECT_TRUE(how.has_value()) << how.error().message();
    EXPECT_EQ(::stat(path.c_str(), &known), 0);
    EXPECT_NE(known.st_gid, group);
    EXPECT_EQ(known.st_mode & 07777U, 0600U);
  }
}

// Whoever reads it meanwhile has the old one or the new one.
WEFT_TEST("file: a replacement is seen whole or not at all") {
  const own_directory in{test::places_for_files().back()};
  const std::string path = in.at("a");
  std::atomic<bool> is_over{false};
  co_await weft::write_file(path, std::string(100'000, 'a'));
  const auto replaces = [&]() -> task<> {
    for (int i = 0; i != test::rounds(40); ++i)
      co_await weft::replace_file(path, std::string(100'000, i % 2 == 0 ? 'b' : 'a'));
    is_over = true;
  };
  const auto reads = [&]() -> task<> {
    while (!is_over) {
      const std::string got = co_await weft::read_file(path);
      EXPECT_TRUE(got == std::string(100'000, got[0]));
      co_await weft::yield();
    }
  };
  auto both = weft::when_all(replaces(), reads());
  co_await std::move(both);
}

task<> fill_a_disk(const own_directory& in) {
  const std::string text = pattern(1'000'000);
  const file one = co_await file::open(to_make, in.at("a"));
  EXPECT_EQ((co_await as_result(one.write_at(0, text))).error(), std::errc::no_space_on_device);
  const std::uint64_t size = co_await one.size();
  EXPECT_GT(size, 0U);
  EXPECT_TRUE(co_await read_some(one, 0, text.size()) == text.substr(0, size));
  EXPECT_EQ((co_await as_result(one.append("x"))).error(), std::errc::no_space_on_device);
  EXPECT_EQ((co_await as_result(one.allocate(0, 1'000'000))).error(), std::errc::no_space_on_device);
  EXPECT_EQ((co_await as_result(weft::replace_file(in.at("a"), text))).error(), std::errc::no_space_on_device);
  EXPECT_EQ(co_await one.size(), size) << "the old one was touched";
  EXPECT_EQ(in.entries(), 1U) << "what could not be finished was left";
}

// A test's body is a coroutine, which can't be skipped.
TEST(file, tells_of_a_full_disk_and_what_was_written_before_is_there) {
  const own_directory in;
  if (::mount("tmpfs", in.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "no file system can be mounted here: " << std::strerror(errno);
  test::run_body(fill_a_disk(in));
  EXPECT_EQ(::umount2(in.path().c_str(), MNT_DETACH), 0);
}

WEFT_TEST("file: a limit of the process's is told") {
  const own_directory in;
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);  // NOLINT: restored below
  const rlimit low{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  {
    const file one = co_await file::open(to_make, in.at("a"));
    EXPECT_EQ((co_await as_result(one.write_at(0, pattern(150'000)))).error(), std::errc::file_too_large);
    EXPECT_EQ(co_await one.size(), 100'000U);
    EXPECT_EQ((co_await as_result(one.write_some_at(100'000, bytes("x")))).error(), std::errc::file_too_large);
    EXPECT_EQ(co_await one.write_some_at(99'998, bytes("abcd")), 2U);
  }
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
}

task<> reads_everywhere(const file& from, const std::string& text, unsigned seed, int rounds) {
  std::minstd_rand random{seed + 1};
  std::string got;
  for (int i = 0; i != rounds; ++i) {
    const std::size_t at = random() % text.size(), size = random() % 9'000;
    got.assign(size, '?');
    got.resize(co_await from.read_at(at, room(got)));
    EXPECT_TRUE(got == text.substr(at, size)) << at << ", " << size;
  }
}

WEFT_TEST("file: many read at once") {
  const own_directory in;
  const std::string text = pattern(4'000'000);
  co_await weft::write_file(in.at("a"), text);
  const file from = co_await file::open(in.at("a"));
  for (const bool is_cached : {true, false}) {
    if (!is_cached) forget(from);
    std::vector<task<>> all;
    for (unsigned i = 0; i != 32; ++i) all.push_back(reads_everywhere(from, text, i, test::rounds(100)));
    auto together = weft::when_all(std::move(all));
    co_await std::move(together);
  }
}

TEST(file, is_read_by_fibers_and_by_plain_threads) {
  const own_directory in;
  const std::string text = pattern(500'000);
  weft::sync_wait(weft::write_file(in.at("a"), text));
  const auto reads = [&](auto waits) {
    file from = waits(file::open(in.at("a")));
    std::string got(text.size(), '?');
    forget(from);
    EXPECT_EQ(waits(from.read_at(0, room(got))), text.size());
    EXPECT_TRUE(got == text);
    waits(from.close());
  };
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    weft::runtime{{.threads = 1, .io = by}}.run([&]() -> task<> {
      auto body = [&](weft::scope& s) -> task<> {
        for (int i = 0; i != 4; ++i)
          s.go([&] { reads([](auto&& what) { return weft::await(std::forward<decltype(what)>(what)); }); });
        co_return;
      };
      co_await weft::with_scope(body);
    }());
  std::thread{[&] { reads([](auto&& what) { return weft::sync_wait(std::forward<decltype(what)>(what)); }); }}.join();
}

// A buffer is its owner's again when the operation has ended, however it has.
task<> reads_and_is_stopped(const file& from, unsigned seed) {
  std::minstd_rand random{seed + 1};
  weft::aligned_buffer buffer{std::size_t{64} * 1024};
  for (int i = 0; i != test::rounds(60); ++i) {
    const std::uint64_t at = random() % 32 * buffer.size();
    const auto limit = std::chrono::microseconds{random() % 200};
    static_cast<void>(co_await as_result(weft::timeout(limit, from.read_at(at, buffer.bytes()))));
    std::ranges::fill(buffer.bytes(), std::byte{0xA5});
    co_await weft::yield();
    EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte one) { return one == std::byte{0xA5}; }));
  }
}

WEFT_TEST("file: the system has no memory of an operation that was stopped") {
  const own_directory in;
  co_await weft::write_file(in.at("a"), pattern(std::size_t{32} * 64 * 1024));
  auto opened = co_await as_result(file::open({.direct = true}, in.at("a")));
  file from;
  if (opened)
    from = *std::move(opened);
  else
    from = co_await file::open(in.at("a"));
  std::vector<task<>> all;
  for (unsigned i = 0; i != 8; ++i) all.push_back(reads_and_is_stopped(from, i));
  auto together = weft::when_all(std::move(all));
  co_await std::move(together);
}

// By a ring, by a thread: a pipe with a name is open when somebody has its other end.
TEST(file, a_pipe_with_a_name_is_waited_for) {
  const own_directory in;
  const std::string path = in.at("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto opens = [&](bool writes) -> task<> {
    std::atomic<bool> has_come = false;
    std::thread other{[&] {
      std::this_thread::sleep_for(50ms);
      has_come = true;
      ::close(::open(path.c_str(), (writes ? O_RDONLY : O_WRONLY) | O_CLOEXEC));
    }};
    const weft::file_options how{.read = !writes, .write = writes};
    const auto got = co_await as_result(file::open(how, path));
    EXPECT_FALSE(got.error()) << got.error().message();
    EXPECT_TRUE(has_come);
    const int both = ::open(path.c_str(), O_RDWR | O_CLOEXEC);  // where that one waits still
    other.join();
    ::close(both);
  };
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const bool writes : {false, true}) weft::runtime{{.threads = 1, .io = by}}.run(opens(writes));
}
TEST(file, a_ring_stops_waiting_for_a_pipe_with_a_name) {
  weft::runtime one{{.threads = 1}};
  if (one.backend() != weft::io_backend::uring) GTEST_SKIP() << "no rings here";
  const own_directory in;
  const std::string path = in.at("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto body = [&]() -> task<> {
    for (const bool writes : {false, true}) {
      const weft::file_options how{.read = !writes, .write = writes};
      auto opens = file::open(how, path);
      const auto late = co_await as_result(weft::timeout(5ms, std::move(opens)));
      EXPECT_EQ(late.error(), weft::errc::timed_out);
    }
  };
  one.run(body());
}

TEST(file, runtimes_say_which_way_files_take) {
  const weft::runtime by_epoll{{.threads = 1, .io = weft::io_backend::epoll}};
  EXPECT_NE(by_epoll.explain().find("Files are read and written"), std::string::npos) << by_epoll.explain();
  const weft::runtime one{{.threads = 1}};
  EXPECT_EQ(one.explain().find("by its ring") != std::string::npos, one.backend() == weft::io_backend::uring);
}

TEST(file, a_forked_copy_of_a_lock_unlocks_nothing) {
  const own_directory in;
  const file one = weft::sync_wait(file::open(to_make, in.at("a")));
  const file other = weft::sync_wait(file::open({.write = true}, in.at("a")));
  std::optional<weft::file_lock> mine{weft::sync_wait(one.lock())};
  const pid_t child = ::fork();
  if (child == 0) {
    mine.reset();
    ::_exit(0);
  }
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(weft::sync_wait(other.try_lock()));
  mine.reset();
  EXPECT_TRUE(weft::sync_wait(other.try_lock()));
}

// Nothing here needs a thread in the child: ThreadSanitizer allows none there.
using file_misuse = testing::Test;
TEST_F(file_misuse, writes_at_an_offset_where_all_go_to_the_end) {
  const own_directory in;
  const file one = file::adopt(::open(in.at("a").c_str(), O_RDWR | O_CREAT | O_APPEND, 0600));
  EXPECT_DEATH(weft::sync_wait(one.write_at(0, "x")), "opened to append was written at an offset");
}
TEST_F(file_misuse, closes_a_file_whose_lock_is_held) {
  const own_directory in;
  file one = file::adopt(::open(in.at("a").c_str(), O_RDWR | O_CREAT, 0600));
  const weft::file_lock held = weft::sync_wait(one.lock());
  EXPECT_DEATH(weft::sync_wait(one.close()), "closed while an operation on it is under way, or a lock of it is held");
  EXPECT_DEATH(static_cast<void>(one.release()), "released while an operation on it is under way");
}

}  // namespace
