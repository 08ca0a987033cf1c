// Operations on a path: its status, its name, its links, permissions and times.
#include <weft/directory.hpp>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "file/directory_walk.hpp"
#include "file/path_call.hpp"

namespace weft::fs {
namespace {

file_time time_of(const struct statx_timestamp& at) noexcept {
  return file_time{std::chrono::seconds{at.tv_sec} + std::chrono::nanoseconds{at.tv_nsec}};
}

answer<file_status> status_of(const char* path, int flags) noexcept {
  struct statx of;
  if (::statx(AT_FDCWD, path, flags, STATX_BASIC_STATS | STATX_BTIME, &of) != 0) return {.refused = errno};
  file_status got{.kind = kind_of_mode(of.stx_mode),
                  .permissions = of.stx_mode & 07777U,
                  .size = of.stx_size,
                  .links = of.stx_nlink,
                  .device = ::makedev(of.stx_dev_major, of.stx_dev_minor),
                  .inode = of.stx_ino,
                  .user = of.stx_uid,
                  .group = of.stx_gid,
                  .accessed = time_of(of.stx_atime),
                  .modified = time_of(of.stx_mtime),
                  .changed = time_of(of.stx_ctime)};
  if ((of.stx_mask & STATX_BTIME) != 0) got.created = time_of(of.stx_btime);
  return {.value = got};
}

timespec as_given(const std::optional<file_time>& time) noexcept {
  if (!time) return {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*time);
  return {.tv_sec = static_cast<time_t>(seconds.time_since_epoch().count()), .tv_nsec = (*time - seconds).count()};
}

answer<bool> make_directory(const char* path, unsigned mode) noexcept {
  if (::mkdir(path, mode) == 0) return {.value = true};
  if (errno != EEXIST) return {.refused = errno};
  struct stat there;
  if (::stat(path, &there) != 0) return {.refused = errno == ENOENT ? EEXIST : errno};  // a link to nothing
  return S_ISDIR(there.st_mode) ? answer<bool>{.value = false} : answer<bool>{.refused = EEXIST};
}

// Tries the last directory first; if its parent is missing, makes the parents (recursively) and tries again.
answer<bool> make_directories(const std::string& path, unsigned mode) {
  answer<bool> made = make_directory(path.c_str(), mode);
  if (made.refused != ENOENT) return made;
  const std::size_t end = path.find_last_not_of('/');
  const std::size_t slash = end == std::string::npos ? end : path.rfind('/', end);
  const std::size_t above = slash == std::string::npos ? slash : path.find_last_not_of('/', slash);
  if (above == std::string::npos) return made;
  if (const answer<bool> first = make_directories(path.substr(0, above + 1), mode); first.refused != 0) return first;
  return make_directory(path.c_str(), mode);
}

answer<std::string> link_text(const char* path) {
  for (std::string text(256, '\0');; text.resize(text.size() * 2)) {
    const ssize_t size = ::readlink(path, text.data(), text.size());
    if (size < 0) return {.refused = errno};
    if (static_cast<std::size_t>(size) == text.size()) continue;  // there may be more
    text.resize(static_cast<std::size_t>(size));
    return {.value = std::move(text)};
  }
}

// For calls with two paths: refuses a NUL in the second path, as call_with_path() does in the first.
template <class Call>
task<> call_with_paths(const char* operation, std::string_view first, std::string_view second, Call call) {
  const bool is_cut = has_nul(second);
  return call_with_path<void>(operation, std::string{first},
                              [second = std::string{second}, is_cut, call](const char* one) {
                                return is_cut ? EINVAL : error_of(call(one, second.c_str()));
                              });
}

}  // namespace

task<file_status> status(std::string_view path) {
  return ask_about_path<file_status>("stat", std::string{path}, [](const char* of) { return status_of(of, 0); });
}
task<file_status> symlink_status(std::string_view path) {
  return ask_about_path<file_status>("stat", std::string{path},
                                     [](const char* of) { return status_of(of, AT_SYMLINK_NOFOLLOW); });
}
task<bool> exists(std::string_view path) {
  return ask_about_path<bool>("stat", std::string{path}, [](const char* of) -> answer<bool> {
    const int refused = status_of(of, 0).refused;
    if (refused == ENOENT || refused == ENOTDIR) return {.value = false};
    return {.refused = refused, .value = true};
  });
}

task<> rename(const rename_options& options, std::string_view from, std::string_view to) {
  const unsigned flags = options.replace ? 0 : RENAME_NOREPLACE;
  return call_with_paths("rename", from, to, [flags](const char* old_name, const char* new_name) {
    return flags == 0 ? ::rename(old_name, new_name) : ::renameat2(AT_FDCWD, old_name, AT_FDCWD, new_name, flags);
  });
}

task<bool> remove(std::string_view path) {
  return call_with_path<bool>("remove", std::string{path}, [](const char* which) -> answer<bool> {
    if (::unlinkat(AT_FDCWD, which, 0) == 0) return {.value = true};
    if ((errno == EISDIR || errno == EPERM) && ::unlinkat(AT_FDCWD, which, AT_REMOVEDIR) == 0) return {.value = true};
    return errno == ENOENT ? answer<bool>{.value = false} : answer<bool>{.refused = errno};
  });
}

task<bool> create_directory(std::string_view path, unsigned permissions) {
  return call_with_path<bool>("create a directory", std::string{path},
                              [permissions](const char* which) { return make_directory(which, permissions); });
}
task<bool> create_directories(std::string_view path, unsigned permissions) {
  return call_with_path<bool>("create directories", std::string{path},
                              [permissions](const char* which) { return make_directories(which, permissions); });
}

task<> create_hard_link(std::string_view to, std::string_view link) {
  return call_with_paths("create a link", link, to,
                         [](const char* name, const char* of) { return ::linkat(AT_FDCWD, of, AT_FDCWD, name, 0); });
}
task<> create_symlink(std::string_view to, std::string_view link) {
  return call_with_paths("create a symbolic link", link, to,
                         [](const char* name, const char* text) { return ::symlink(text, name); });
}
task<std::string> read_symlink(std::string_view path) {
  return ask_about_path<std::string>("read a symbolic link", std::string{path},
                                     [](const char* of) { return link_text(of); });
}

task<> permissions(std::string_view path, unsigned bits) {
  return call_with_path<void>("set permissions", std::string{path},
                              [bits](const char* of) { return error_of(::chmod(of, bits)); });
}
task<> set_times(const file_times& times, std::string_view path) {
  return call_with_path<void>("set times", std::string{path}, [times](const char* of) {
    const timespec both[2]{as_given(times.accessed), as_given(times.modified)};
    return error_of(::utimensat(AT_FDCWD, of, both, 0));
  });
}

}  // namespace weft::fs
