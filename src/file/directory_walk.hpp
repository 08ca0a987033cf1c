// A depth-first walk through a tree of directories, for directory() and remove_all(). All of it blocks.
//
// The walk reads a directory to its end and keeps the names of its subdirectories; then it enters these one after the other. So
// each directory is read once, and removals in it do not disturb the reading. A subdirectory is opened relative to its parent's
// descriptor (openat), by its name and, unless links are followed, with O_NOFOLLOW: so a tree that is changed meanwhile can't
// lead the walk out of it.
//
// Of the directories above the one being read, only the nearest 16 are kept open (all, if links are followed), so that a tree may
// be deeper than the process may have descriptors. One that was closed is opened again by "..", and must be the same file: else
// somebody has moved the directory below it.
//
// Rejected: to enter directories by paths from the top. Each path is longer than its parent's, somebody could put a link anywhere
// in it, and openat2(), which can forbid links, takes paths of at most 4096 bytes.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <weft/directory.hpp>
#include <weft/unix.hpp>

namespace weft::fs {

inline file_kind kind_of_mode(unsigned mode) noexcept {
  switch (mode & S_IFMT) {
    case S_IFREG: return file_kind::regular;
    case S_IFDIR: return file_kind::directory;
    case S_IFLNK: return file_kind::symlink;
    case S_IFBLK: return file_kind::block_device;
    case S_IFCHR: return file_kind::character_device;
    case S_IFIFO: return file_kind::fifo;
    case S_IFSOCK: return file_kind::socket;
    default: return file_kind::unknown;
  }
}

class directory_walk {
 public:
  /// The result of a call: an error number, or 0.
  using refusal = int;

  struct entry {
    const char* name;
    file_kind kind;
    std::uint64_t inode;
  };

  explicit directory_walk(bool follow) noexcept : follows_{follow} {}

  /// Enters the top directory. `flags` are added to the usual ones of open(): O_NOFOLLOW, or none.
  refusal begin(const char* path, int flags) { return enter(AT_FDCWD, path, flags); }

  bool is_over() const noexcept { return levels_.empty(); }
  /// The descriptor's number of the directory being read.
  int number() const noexcept { return levels_.back().file.number(); }
  /// The path from the top directory to the directory being read: "" or "a/b/".
  const std::string& prefix() const noexcept { return prefix_; }

  /// Reads on in the present directory, by one system call, and calls `take` with each entry; `take` returns an error number, or
  /// 0. Sets `more` to whether there may be more entries.
  template <class Take>
  refusal read(bool& more, Take take) {
    if (buffer_ == nullptr) buffer_ = std::make_unique<buffer>();
    ssize_t size;
    do size = ::getdents64(number(), buffer_->bytes, sizeof buffer_->bytes);
    while (size < 0 && errno == EINTR);
    if (size < 0 && errno != ENOENT) return errno;  // ENOENT: it was removed
    more = size > 0;
    for (ssize_t at = 0; at < size;) {
      const auto* const one = reinterpret_cast<const dirent64*>(buffer_->bytes + at);  // NOLINT: the kernel wrote it
      at += one->d_reclen;
      if (std::strcmp(one->d_name, ".") == 0 || std::strcmp(one->d_name, "..") == 0) continue;
      const entry now{one->d_name, kind_of(*one), one->d_ino};
      if (const refusal refused = take(now); refused != 0) return refused;
    }
    return 0;
  }
  /// Starts to read the present directory from its beginning again.
  refusal rewind() noexcept {
    levels_.back().below.clear();  // reading finds them again
    return ::lseek(number(), 0, SEEK_SET) < 0 ? errno : 0;
  }

  /// Notes a subdirectory of the present directory, to be entered later.
  void keep_for_later(const char* name) { levels_.back().below.emplace_back(name); }

  /// Enters the next directory that was noted: a subdirectory of the present one, or else of the nearest one above that has any.
  /// For each directory that it leaves on the way up it calls `has_left` with the parent's descriptor and the name there;
  /// `has_left` returns an error number, or 0. Afterwards the walk is in a directory just entered, or is_over(). A name that is
  /// no directory any more is skipped.
  template <class Left>
  refusal go_on(bool skips_denied, Left has_left) {
    while (!levels_.empty()) {
      level& here = levels_.back();
      if (!here.below.empty()) {
        const std::string name = std::move(here.below.back());
        here.below.pop_back();
        const refusal refused = enter(here.file.number(), name.c_str(), follows_ ? 0 : O_NOFOLLOW);
        if (refused == 0) return 0;
        if (refused == ENOENT || refused == ENOTDIR || refused == ELOOP) continue;
        if (refused == EACCES && skips_denied) continue;
        return refused;
      }
      if (levels_.size() == 1) {
        levels_.pop_back();
        return 0;
      }
      level& above = levels_[levels_.size() - 2];
      if (above.file.number() < 0)
        if (const refusal refused = find_again(here.file.number(), above); refused != 0) return refused;
      const std::string name = std::move(here.name);
      levels_.pop_back();
      if (!prefix_.empty()) prefix_.resize(prefix_.size() - name.size() - 1);
      if (const refusal refused = has_left(number(), name.c_str()); refused != 0) return refused;
    }
    return 0;
  }

 private:
  struct level {
    net::owned_descriptor file;
    std::string name;
    dev_t device;
    ino_t inode;
    std::vector<std::string> below;
  };
  struct buffer {
    alignas(dirent64) char bytes[std::size_t{32} * 1024];
  };
  static constexpr std::size_t most_open = 16;

  file_kind kind_of(const dirent64& one) const noexcept {
    if (one.d_type != DT_UNKNOWN) return kind_of_mode(DTTOIF(one.d_type));
    struct stat of;
    return ::fstatat(number(), one.d_name, &of, AT_SYMLINK_NOFOLLOW) == 0 ? kind_of_mode(of.st_mode)
                                                                          : file_kind::unknown;
  }

  refusal enter(int from, const char* name, int flags) {
    net::owned_descriptor file{::openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags)};
    if (file.number() < 0) return errno;
    struct stat of;
    if (::fstat(file.number(), &of) != 0) return errno;
    if (follows_)
      for (const level& one : levels_)
        if (one.device == of.st_dev && one.inode == of.st_ino) return ELOOP;
    const bool is_first = levels_.empty();
    levels_.push_back({std::move(file), is_first ? std::string{} : std::string{name}, of.st_dev, of.st_ino, {}});
    if (!is_first) prefix_.append(name).append("/");
    // If links are followed, ".." need not be the directory that the walk came from, so all stay open.
    if (!follows_ && levels_.size() > most_open) levels_[levels_.size() - 1 - most_open].file = {};
    return 0;
  }
  static refusal find_again(int from, level& which) noexcept {
    net::owned_descriptor file{::openat(from, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (file.number() < 0) return errno;
    struct stat of;
    if (::fstat(file.number(), &of) != 0) return errno;
    if (of.st_dev != which.device || of.st_ino != which.inode) return ESTALE;  // moved during the walk
    which.file = std::move(file);
    return 0;
  }

  const bool follows_;
  std::vector<level> levels_;
  std::string prefix_;
  std::unique_ptr<buffer> buffer_;
};

}  // namespace weft::fs
