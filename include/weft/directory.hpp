// Paths and directories: what is there, what it is called, and what lies in it. What a file contains is file.hpp's.
//
//     namespace fs = w::fs;
//     for (auto all = fs::directory({.recursive = true}, "/var/log"); auto* one = co_await all.next();)
//       if (one->kind == fs::file_kind::regular) std::printf("%s\n", one->path.c_str());
//
// The names are those of std::filesystem where it has them. Each call may wait for a disk, so it runs on the blocking pool of the
// process. A call that has begun is waited for: what it has done is known. All of them:
//
//   Suspends  always; resumes on its own executor.
//   Cancel    before it has begun it has had no effect. Once it has, it is waited for, and what it gives is not lost.
//   Fails     with a weft::error of the system's code, which names the operation and the path. Nothing is thrown where a task
//             awaits it by as_result or nothrow, but for a directory(), which throws.
//   Threads   any. Tasks, fibers and threads.
//   Cost      two hand-overs between threads, beside the system call.
//
// Rejected: to make those calls by a ring that a ring can make. The kernel runs them on threads, too: a statx that takes 0.8 us takes
// 5.6 by a ring, and 10 by the blocking pool; and a ring can't list a directory, nor set times or permissions.
//
// What goes through directories keeps descriptors of them, and goes from one to the next by name and without following a link:
// who replaces a directory by a symbolic link meanwhile leads nobody elsewhere. That matters where a tree is removed.
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
enum class file_kind : std::uint8_t {
  unknown,
  regular,
  directory,
  symlink,
  block_device,
  character_device,
  fifo,
  socket,
};

/// A time of a file: since 1970, by the system's clock.
using file_time = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

/// What the system knows of a path.
struct file_status {
  file_kind kind = file_kind::unknown;
  unsigned permissions = 0;             ///< the twelve bits: 0644 and the like
  std::uint64_t size = 0;               ///< bytes; of a symbolic link, of what it contains
  std::uint64_t links = 0;              ///< names that it has
  std::uint64_t device = 0, inode = 0;  ///< together they say which file it is, as long as it is there
  unsigned user = 0, group = 0;
  file_time accessed{}, modified{}, changed{};
  std::optional<file_time> created{};  ///< where the file system knows
};

/// Of what the path leads to. Fails with no_such_file_or_directory where there is nothing.
WEFT_COROUTINE_TAKES_OVER task<file_status> status(std::string_view path);
/// The same, of a symbolic link itself.
WEFT_COROUTINE_TAKES_OVER task<file_status> symlink_status(std::string_view path);
/// Whether the path leads to anything. Fails where that can't be said: a directory on the way may not be searched, say.
WEFT_COROUTINE_TAKES_OVER task<bool> exists(std::string_view path);

/// What becomes of what has the new name already.
struct rename_options {
  bool replace =
      true;  ///< no: fails with file_exists where there is something; not on all file systems (invalid_argument)
};
/// Gives it another name, in the same file system. Replaces what has that, in one step.
WEFT_COROUTINE_TAKES_OVER task<> rename(const rename_options& options, std::string_view from, std::string_view to);
WEFT_COROUTINE_TAKES_OVER inline task<> rename(std::string_view from, std::string_view to) {
  return rename(rename_options{}, from, to);
}

/// Removes a file, a symbolic link itself, or an empty directory. False: there was nothing.
WEFT_COROUTINE_TAKES_OVER task<bool> remove(std::string_view path);
/// Removes it, and of a directory all that is below it. Gives how many names were removed; 0: there was nothing. Follows no
/// symbolic link, and removes nothing that such a one leads to, also where one is put in a directory's place meanwhile, and where a
/// slash comes behind it.
///
/// Cancel  while it is under way, a part was removed.
/// Fails   with invalid_argument where the path ends in "." or "..", and with not_a_directory where a slash comes behind what is
///         none; nothing was removed. With the first failure; a part was removed. With directory_not_empty where somebody goes on adding files.
WEFT_COROUTINE_TAKES_OVER task<std::uint64_t> remove_all(std::string_view path);

/// Makes a directory, with these permissions less the umask of the process. False: there was one. Fails with file_exists where
/// something else is there.
WEFT_COROUTINE_TAKES_OVER task<bool> create_directory(std::string_view path, unsigned permissions = 0777);
/// The same, with all directories above it that are not there.
WEFT_COROUTINE_TAKES_OVER task<bool> create_directories(std::string_view path, unsigned permissions = 0777);

/// A second name for the same file.
WEFT_COROUTINE_TAKES_OVER task<> create_hard_link(std::string_view to, std::string_view link);
/// `to` is what the link contains; nobody looks whether it leads anywhere.
WEFT_COROUTINE_TAKES_OVER task<> create_symlink(std::string_view to, std::string_view link);
/// What a symbolic link contains.
WEFT_COROUTINE_TAKES_OVER task<std::string> read_symlink(std::string_view path);

/// Sets the twelve bits: 0644 and the like.
WEFT_COROUTINE_TAKES_OVER task<> permissions(std::string_view path, unsigned bits);
struct file_times {
  std::optional<file_time> accessed{}, modified{};  ///< empty: stays as it is
};
/// Sets the times of a file, or of what a link leads to.
WEFT_COROUTINE_TAKES_OVER task<> set_times(const file_times& times, std::string_view path);

// ---- what lies in a directory -----------------------------------------------------------------------------------------------

/// What lies in a directory.
struct directory_entry {
  std::string path;  ///< from the directory that was asked for: "b.txt", and below others "a/b.txt"
  file_kind kind = file_kind::unknown;
  std::uint64_t inode = 0;

  std::string_view name() const noexcept {  ///< the last part of the path
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string_view{path} : std::string_view{path}.substr(slash + 1);
  }
};

/// What of a directory is listed.
struct directory_options {
  bool recursive = false;  ///< also what is below; a directory comes before what lies in it
  bool follow_symlinks =
      false;  ///< goes into directories that symbolic links lead to, but not into one that it is in already
  bool skip_denied = false;  ///< directories below that may not be read: their names are given, and no failure
};

/// All entries, but "." and "..", in no particular order. Of what is added or removed meanwhile each may come or not; what is there
/// from the beginning to the end comes once. A link on the way to `path` is followed.
///
/// Suspends  for each batch of entries: some hundred names, or what one system call gives.
/// Cancel    between two batches. Its descriptors are closed when it goes, wherever it stands.
/// Fails     throws weft::error.
/// Cost      a hop to the blocking pool a batch.
async_generator<directory_entry> directory(directory_options options, std::string_view path);
WEFT_COROUTINE_WRAPPER inline async_generator<directory_entry> directory(std::string_view path) {
  return directory({}, path);
}

/// Where a temporary directory is made, and what its name begins with.
struct temporary_directory_options {
  std::string_view in{};  ///< where; empty: what TMPDIR in the environment says, or /tmp
  std::string_view prefix = "weft-";
};

/// A directory of its own, which nobody else may enter, and which is removed with all that is in it.
///
/// Its destructor removes it on the thread it runs on, which blocks, and says nothing where that fails: who is in a task awaits
/// remove(). A copy that fork() makes removes nothing.
class [[nodiscard("it is removed when this goes")]] temporary_directory {
 public:
  temporary_directory() noexcept = default;  ///< none
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
  /// Removes it. Otherwise as remove_all(); where that fails or is stopped, the destructor tries again.
  task<> remove();
  /// It stays, and is the caller's.
  [[nodiscard("nobody removes it then")]] std::string release() noexcept { return std::exchange(path_, {}); }

 private:
  friend task<temporary_directory> make_temporary_directory(const temporary_directory_options& options);
  static task<temporary_directory> make(std::string pattern);
  void remove_now() noexcept;
  std::string path_;
  int maker_ = 0;
};
/// Makes a directory with a name that nothing else has, for this user alone. Fails with an error of the system's.
WEFT_COROUTINE_TAKES_OVER task<temporary_directory> make_temporary_directory(
    const temporary_directory_options& options);
WEFT_COROUTINE_TAKES_OVER inline task<temporary_directory> make_temporary_directory() {
  return make_temporary_directory(temporary_directory_options{});
}

}  // namespace weft::fs
