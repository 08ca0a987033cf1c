// Paths and directories: status, names, links, permissions, listing and removal. Reading and writing files is in file.hpp.
//
//     namespace fs = w::fs;
//     for (auto all = fs::directory({.recursive = true}, "/var/log"); auto* one = co_await all.next();)
//       if (one->kind == fs::file_kind::regular) std::printf("%s\n", one->path.c_str());
//
// The names are those of std::filesystem where it has them. Each call may wait for a disk, so it runs on the process's blocking
// pool. What holds for all of them:
//
//   Suspends  always; resumes on its own executor.
//   Cancel    a call that is stopped before it has begun has no effect. One that has begun runs to its end, and its result is
//             not lost; but status(), symlink_status(), exists() and read_symlink(), which change nothing, are abandoned as by
//             blocking(abandon_on_stop, ...).
//   Fails     with a weft::error of the system's code, which names the operation and the path. as_result() and nothrow() take
//             it without a throw; directory() throws it.
//   Threads   any: in tasks, in fibers and on plain threads.
//   Lifetime  paths are copied by the call.
//   Cost      two changes of thread, beside the system call.
//
// Rejected: io_uring for the calls that it has. The kernel runs them on threads, too: a statx that takes 0.8 us takes 5.6 us by
// io_uring and 10 us by the blocking pool; and io_uring can't list a directory, nor set times or permissions.
//
// A walk through a tree holds a descriptor of each directory that it is in, and opens the next one by name relative to it,
// without following a symbolic link. So nobody can lead it elsewhere by replacing a directory by a link, which matters for
// remove_all().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <weft/async_generator.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/task.hpp>

namespace weft::fs {

/// What a name stands for.
enum class file_kind {
  unknown,
  regular,
  directory,
  symlink,
  block_device,
  character_device,
  fifo,
  socket,
};

/// A time of a file, by the system's clock, in nanoseconds.
using file_time = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

/// What the system knows about what a path leads to.
struct file_status {
  file_kind kind = file_kind::unknown;
  unsigned permissions = 0;             ///< the lowest twelve bits of its mode, such as 0644
  std::uint64_t size = 0;               ///< bytes; of a symbolic link, the length of its text
  std::uint64_t links = 0;              ///< how many names it has
  std::uint64_t device = 0, inode = 0;  ///< both together identify the file, as long as it exists
  unsigned user = 0, group = 0;
  file_time accessed{}, modified{}, changed{};
  std::optional<file_time> created{};  ///< if the file system keeps it
};

/// Gives the status of what the path leads to; follows symbolic links. Fails with no_such_file_or_directory where there is
/// nothing.
WEFT_COROUTINE_TAKES_OVER task<file_status> status(std::string_view path);
/// The same, but of a symbolic link itself where the path names one.
WEFT_COROUTINE_TAKES_OVER task<file_status> symlink_status(std::string_view path);
/// Gives whether the path leads to anything. Fails where that can't be known, as where a directory on the way may not be
/// searched.
WEFT_COROUTINE_TAKES_OVER task<bool> exists(std::string_view path);

/// What rename() does where something has the new name already.
struct rename_options {
  /// Replaces it. Otherwise rename() fails with file_exists, or with invalid_argument on a file system that can't do that.
  bool replace = true;
};
/// Gives a file or a directory another name in the same file system, and replaces atomically what has that name.
WEFT_COROUTINE_TAKES_OVER task<> rename(const rename_options& options, std::string_view from, std::string_view to);
WEFT_COROUTINE_TAKES_OVER inline task<> rename(std::string_view from, std::string_view to) {
  return rename(rename_options{}, from, to);
}

/// Removes a file, a symbolic link (not what it leads to), or an empty directory. Gives false where there was nothing.
WEFT_COROUTINE_TAKES_OVER task<bool> remove(std::string_view path);
/// Removes a file, or a directory with all that is below it, and gives how many names it has removed; 0: there was nothing. It
/// never follows a symbolic link: not where one replaces a directory meanwhile, and not where the path ends in a slash behind
/// one.
///
/// Cancel  ends between two names; what was removed stays removed.
/// Fails   with invalid_argument where the path ends in "." or "..", and with not_a_directory where it ends in a slash behind
///         what is no directory; both remove nothing. At the first name that can't be removed, with that error. With
///         directory_not_empty where others keep adding files.
WEFT_COROUTINE_TAKES_OVER task<std::uint64_t> remove_all(std::string_view path);

/// Makes a directory, with these permissions less the process's umask. Gives false where there was one. Fails with file_exists
/// where there is something else.
WEFT_COROUTINE_TAKES_OVER task<bool> create_directory(std::string_view path, unsigned permissions = 0777);
/// The same, and makes all missing directories above it. Gives whether it has made the last one.
WEFT_COROUTINE_TAKES_OVER task<bool> create_directories(std::string_view path, unsigned permissions = 0777);

/// Gives the file `to` another name, `link`, in the same file system.
WEFT_COROUTINE_TAKES_OVER task<> create_hard_link(std::string_view to, std::string_view link);
/// Makes a symbolic link with the text `to`, which need not lead anywhere.
WEFT_COROUTINE_TAKES_OVER task<> create_symlink(std::string_view to, std::string_view link);
/// Gives the text of a symbolic link.
WEFT_COROUTINE_TAKES_OVER task<std::string> read_symlink(std::string_view path);

/// Sets the permissions, the lowest twelve bits of the mode, such as 0644. Follows symbolic links.
WEFT_COROUTINE_TAKES_OVER task<> permissions(std::string_view path, unsigned bits);
/// Times to be set.
struct file_times {
  std::optional<file_time> accessed{}, modified{};  ///< empty: keeps the time that it has
};
/// Sets the times of a file. Follows symbolic links.
WEFT_COROUTINE_TAKES_OVER task<> set_times(const file_times& times, std::string_view path);

// ---- what lies in a directory -----------------------------------------------------------------------------------------------

/// One name in a directory.
struct directory_entry {
  std::string path;  ///< relative to the directory that is listed: "b.txt", or "a/b.txt" in one below it
  file_kind kind = file_kind::unknown;
  std::uint64_t inode = 0;

  std::string_view name() const noexcept {  ///< the last part of the path
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string_view{path} : std::string_view{path}.substr(slash + 1);
  }
};

/// How a directory is listed.
struct directory_options {
  bool recursive = false;  ///< also lists the directories below it; each comes before what lies in it
  /// Of a recursive listing: also enters directories by symbolic links, except one that it is in already.
  bool follow_symlinks = false;
  /// Of a recursive listing: gives the name of a directory that may not be read, and goes on. Otherwise the listing fails
  /// there.
  bool skip_denied = false;
};

/// Lists all names but "." and "..", in no particular order. A name that is there from the beginning to the end of the listing
/// comes once; one that is added or removed meanwhile may come or not. Symbolic links in `path` are followed.
///
/// Suspends  once for each batch of names: some hundred, as many as one system call gives.
/// Cancel    ends between two batches. Its destructor closes its descriptors, also before the end of the listing.
/// Fails     throws weft::error.
/// Cost      a call on the blocking pool for each batch.
async_generator<directory_entry> directory(directory_options options, std::string_view path);
WEFT_COROUTINE_WRAPPER inline async_generator<directory_entry> directory(std::string_view path) {
  return directory({}, path);
}

/// Where a temporary directory is made, and how it is named.
struct temporary_directory_options {
  std::string_view in{};              ///< the directory to make it in; empty: $TMPDIR, or /tmp where that is not set
  std::string_view prefix = "weft-";  ///< what its name begins with
};

/// A directory that only this user may enter, and that is removed with all that is in it.
///
/// Its destructor removes it, blocks the calling thread meanwhile, and ignores failures: a task awaits remove() instead. A copy
/// of it in a child of fork() removes nothing.
class [[nodiscard("it is removed when this goes")]] temporary_directory {
 public:
  temporary_directory() noexcept = default;  ///< stands for no directory
  temporary_directory(temporary_directory&& other) noexcept
      : path_{std::exchange(other.path_, {})}, maker_{other.maker_} {}
  temporary_directory& operator=(temporary_directory&& other) noexcept {
    temporary_directory old{std::move(*this)};
    path_ = std::exchange(other.path_, {});
    maker_ = other.maker_;
    return *this;
  }
  ~temporary_directory() {
    if (!path_.empty()) remove_now();
  }

  const std::string& path() const noexcept { return path_; }  ///< empty: it was removed, released or moved from
  /// Removes it, as remove_all(). Where that fails or is stopped, the destructor tries again.
  task<> remove();
  /// Gives its path to the caller, who removes it.
  [[nodiscard("nobody removes it then")]] std::string release() noexcept { return std::exchange(path_, {}); }

 private:
  friend task<temporary_directory> make_temporary_directory(const temporary_directory_options& options);
  static task<temporary_directory> make(std::string pattern);
  void remove_now() noexcept;
  std::string path_;
  int maker_ = 0;
};
/// Makes a temporary directory with a new name, for this user alone.
WEFT_COROUTINE_TAKES_OVER task<temporary_directory> make_temporary_directory(
    const temporary_directory_options& options);
WEFT_COROUTINE_TAKES_OVER inline task<temporary_directory> make_temporary_directory() {
  return make_temporary_directory(temporary_directory_options{});
}

}  // namespace weft::fs
