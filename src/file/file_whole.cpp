// read_file, write_file and replace_file.
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/file.hpp>
#include <weft/nothrow.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/with.hpp>

#include "file/file_access.hpp"
#include "file/file_calls.hpp"

namespace weft::detail {

// The most by which read_whole() grows the string at once: resize() sets the new bytes to zero, on the worker.
constexpr std::size_t most_room = std::size_t{4} << 20;

// The file's size is only a first guess: it may change meanwhile, and files of /proc have size 0.
task<std::string> read_whole(std::string path, std::size_t limit) {
  file from = co_await nothrow(file::open(path));
  const file_status known = co_await nothrow(from.stat());
  if (known.is_regular && known.size > limit) co_await fail_with(file_error(EFBIG, "read a file", path));
  // One byte more than the size: a read that gives fewer than it asks for tells the end.
  const std::size_t expected = static_cast<std::size_t>(std::min<std::uint64_t>(known.size, limit)) + 1;
  std::string text;
  text.reserve(expected);
  std::size_t so_far = 0, next = std::min(expected, most_room);
  for (;;) {
    text.resize(so_far + next);
    auto reading = from.read_at(so_far, std::as_writable_bytes(std::span{text}.subspan(so_far)));
    const std::size_t got = co_await nothrow(std::move(reading));
    so_far += got;
    if (so_far > limit) co_await fail_with(file_error(EFBIG, "read a file", path));
    if (got != next) break;
    const std::size_t left = so_far < expected ? expected - so_far : std::min(so_far, limit + 1 - so_far);
    next = std::clamp<std::size_t>(left, 4096, most_room);
  }
  text.resize(so_far);
  co_return text;
}

task<> write_whole(std::string path, std::string_view data, unsigned permissions) {
  constexpr file_options how{.read = false, .write = true, .create = true, .truncate = true};
  file_options mine = how;
  mine.permissions = permissions;
  file to = co_await nothrow(file::open(mine, path));
  co_await nothrow(to.write_at(0, data));
  co_await nothrow(to.close());
}

namespace {

struct replacement {
  std::string path, beside, directory;
  unsigned permissions;
  bool has_old = false;
  bool exists = false, is_in_place = false;  // the new file
};

constexpr const char* replaces_file = "replace a file";

// Gives the new file the old one's group, access control list and permissions. Where it can't have the group and the list, the
// permissions of the group would be another group's, or those of a list's mask: then it has none. Returns an error number, or 0.
int make_alike(int number, const replacement& of, const struct stat& old) noexcept {
  constexpr const char* of_list = "system.posix_acl_access";
  constexpr mode_t of_group = S_IRWXG;  // with a list, its mask
  std::array<char, 4096> list{};
  const ssize_t size = ::lgetxattr(of.path.c_str(), of_list, list.data(), list.size());
  const bool has_list = size >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
  struct stat mine{};
  const bool has_group = ::fstat(number, &mine) == 0 &&
                         (mine.st_gid == old.st_gid || ::fchown(number, static_cast<uid_t>(-1), old.st_gid) == 0);
  // The directory may have given it a list of its own.
  const bool is_alike =
      has_group &&
      (size >= 0 ? ::fsetxattr(number, of_list, list.data(), static_cast<std::size_t>(size), 0) == 0
                 : !has_list && (::fremovexattr(number, of_list) == 0 || errno == ENODATA || errno == EOPNOTSUPP));
  // The new file may have another owner than the old one: with the old set-user-ID bit its content would run as that owner.
  return ::fchmod(number, old.st_mode & 0777U & ~(is_alike ? 0U : of_group)) == 0 ? 0 : errno;
}

// Makes the new file beside the old one. Returns its number, or a negative error number.
int begin_beside(replacement* of) {
  struct stat old{};
  of->has_old = ::lstat(of->path.c_str(), &old) == 0 && S_ISREG(old.st_mode);
  for (int tries = 0;; ++tries) {
    std::array<unsigned char, 8> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return -errno;
    of->beside.resize(of->beside.size() - 16);
    for (const unsigned char each : random)
      of->beside.append({"0123456789abcdef"[each >> 4], "0123456789abcdef"[each & 15]});
    // The new file is readable for its owner alone until it has the old one's permissions.
    const int number =
        ::open(of->beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, of->has_old ? 0600 : of->permissions);
    if (number < 0 && errno == EEXIST && tries != 16) continue;
    if (number < 0) return -errno;
    const int refused = of->has_old ? make_alike(number, *of, old) : 0;
    if (refused == 0) return number;
    ::close(number);
    ::unlink(of->beside.c_str());
    return -refused;
  }
}

// Renames the new file to its place, and syncs the directory. Returns an error number, or 0.
int put_in_place(replacement* of) noexcept {
  if (::rename(of->beside.c_str(), of->path.c_str()) != 0) return errno;
  of->is_in_place = true;
  const owned_number directory{::open(of->directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.number() < 0) return errno;
  return -perform({.what = file_request::kind::sync, .number = directory.number()});
}

// Removes the new file, unless it was never made, or was renamed to its place. It may be a disk's work, so the pool does it; where
// there is no memory or no thread for that, this thread.
task<> remove_unfinished(const replacement* of) {
  if (!of->exists || of->is_in_place) co_return;
  const auto removes = [of]() noexcept { ::unlink(of->beside.c_str()); };
  bool is_removed = false;
  try {
    co_await blocking(removes);
    is_removed = true;
  } catch (...) {
  }
  if (!is_removed) removes();
}

task<> write_and_put_in_place(replacement* of, std::string_view data) {
  co_await on_scope_exit(remove_unfinished(of));
  co_await check_stop();
  const int number = co_await blocking(begin_beside, of);
  if (number < 0) co_await fail_with(file_error(-number, replaces_file, of->path));
  of->exists = true;
  file to = file_access::take_over(owned_number{number}, {.writes = true});
  co_await nothrow(to.write_at(0, data));
  co_await nothrow(to.sync());
  co_await nothrow(to.close());
  const int refused = co_await blocking(put_in_place, of);
  if (refused != 0) co_await fail_with(file_error(refused, replaces_file, of->path));
}

}  // namespace

task<> replace_whole(std::string path, std::string_view data, unsigned permissions) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == path.npos ? 0 : slash + 1;
  if (name == path.size() || path.find('\0') != path.npos) co_await fail_with(file_error(EINVAL, replaces_file, path));
  replacement mine;
  mine.permissions = permissions;
  mine.directory = name == 0 ? "." : path.substr(0, name);
  // Only the first 200 bytes of the name, since with the suffix it must not exceed the 255 bytes of a file name.
  mine.beside = path.substr(0, name) + "." + path.substr(name, 200) + "." + std::string(16, '0');
  mine.path = std::move(path);

  co_await nothrow(write_and_put_in_place(&mine, data));
}

}  // namespace weft::detail
