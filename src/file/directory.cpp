// Reads directories, and removes trees of directories.
#include <weft/directory.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <weft/blocking.hpp>
#include <weft/error.hpp>
#include <weft/nothrow.hpp>

#include "file/directory_walk.hpp"
#include "file/path_call.hpp"

namespace weft::fs {
namespace {

// How many names one call on the blocking pool handles: few enough to notice a stop soon, and enough that the hop to the pool
// costs little for each.
constexpr std::size_t names_a_batch = 512;

// ---- reading ----------------------------------------------------------------------------------------------------------------

class listing {
 public:
  listing(const directory_options& how, std::string path) noexcept
      : how_{how}, path_{std::move(path)}, walk_{how.follow_symlinks} {}

  /// Returns an error number, or 0. An empty `into` with 0: there are no more entries.
  int fill(std::vector<directory_entry>& into) {
    into.clear();
    if (!std::exchange(has_begun_, true))
      if (const int refused = has_nul(path_) ? EINVAL : walk_.begin(path_.c_str(), 0); refused != 0) return refused;
    while (!walk_.is_over() && into.size() < names_a_batch) {
      bool more = false;
      const int refused = walk_.read(more, [&](const directory_walk::entry& one) {
        into.push_back({walk_.prefix() + one.name, one.kind, one.inode});
        if (is_entered(one)) walk_.keep_for_later(one.name);
        return 0;
      });
      if (refused != 0) return refused;
      if (more) continue;
      const auto nothing = [](int, const char*) { return 0; };
      if (const int left = walk_.go_on(how_.skip_denied, nothing); left != 0) return left;
    }
    return 0;
  }
  const std::string& path() const noexcept { return path_; }

 private:
  bool is_entered(const directory_walk::entry& one) const noexcept {
    return how_.recursive &&
           (one.kind == file_kind::directory || (how_.follow_symlinks && one.kind == file_kind::symlink));
  }

  const directory_options how_;
  const std::string path_;
  directory_walk walk_;
  bool has_begun_ = false;
};

async_generator<directory_entry> list(listing all) {
  std::vector<directory_entry> batch;
  const auto fill = [&] { return all.fill(batch); };
  for (;;) {
    const int refused = co_await blocking(fill);
    // The entries found before a failure are given first.
    for (directory_entry& one : batch) co_yield std::move(one);
    if (refused != 0) throw error{system_error(refused), "read a directory", all.path()};
    if (batch.empty()) co_return;
  }
}

// ---- removing ---------------------------------------------------------------------------------------------------------------

class removal {
 public:
  // Removes slashes at the end of the path, except in "/": with one, the system would follow a link that the path ends in.
  explicit removal(std::string path) noexcept : path_{std::move(path)} {
    const std::size_t size = path_.find_last_not_of('/') + 1;
    is_directory_asked_for_ = size != path_.size();
    path_.resize(std::max<std::size_t>(size, path_.empty() ? 0 : 1));
  }

  /// Removes a batch of names. Returns an error number, or 0; sets `is_done` when all is removed.
  int go_on(bool& is_done) {
    const std::uint64_t enough = removed_ + names_a_batch;
    if (!std::exchange(has_begun_, true))
      if (const int refused = begin(); refused != 0) return refused;
    while (!walk_.is_over() && removed_ < enough)
      if (const int refused = turn(); refused != 0) return refused;
    is_done = walk_.is_over();
    return is_done && is_directory_ ? remove(AT_FDCWD, path_.c_str(), AT_REMOVEDIR) : 0;
  }
  std::uint64_t removed() const noexcept { return removed_; }
  const std::string& path() const noexcept { return path_; }

 private:
  int begin() {
    if (has_nul(path_) || ends_in_dots()) return EINVAL;
    const int refused = walk_.begin(path_.c_str(), O_NOFOLLOW);
    is_directory_ = refused == 0;
    if (refused == ENOTDIR || refused == ELOOP)
      return is_directory_asked_for_ ? ENOTDIR : remove(AT_FDCWD, path_.c_str(), 0);
    return refused == ENOENT ? 0 : refused;
  }
  // "." and ".." can't be removed, and "link/." leads through a link.
  bool ends_in_dots() const noexcept {
    const std::string_view last = std::string_view{path_}.substr(path_.rfind('/') + 1);
    return last == "." || last == "..";
  }
  int turn() {
    const std::uint64_t before = removed_;
    bool more = false;
    const int refused = walk_.read(more, [&](const directory_walk::entry& one) {
      if (one.kind != file_kind::directory) {
        const int left = remove(walk_.number(), one.name, 0);
        if (left != EISDIR) return left;  // EISDIR: the name is a directory's by now
      }
      // An empty directory goes at once.
      const int left = remove(walk_.number(), one.name, AT_REMOVEDIR);
      if (left == ENOTEMPTY || left == EEXIST) walk_.keep_for_later(one.name);
      return left == ENOTEMPTY || left == EEXIST || left == ENOTDIR ? 0 : left;
    });
    if (refused != 0) return refused;
    removed_here_ |= removed_ != before;
    if (more) {
      ++batches_here_;
      return 0;
    }
    // A directory that took several system calls to read is read again: a file system may skip names while others are removed.
    const bool once_more = std::exchange(removed_here_, false) && batches_here_ > 1;
    batches_here_ = 0;
    if (once_more) return walk_.rewind();
    return walk_.go_on(false, [this](int from, const char* name) { return remove(from, name, AT_REMOVEDIR); });
  }
  int remove(int from, const char* name, int flags) noexcept {
    if (::unlinkat(from, name, flags) == 0) {
      ++removed_;
      return 0;
    }
    return errno == ENOENT ? 0 : errno;  // ENOENT: somebody else has removed it
  }

  std::string path_;
  directory_walk walk_{false};
  std::uint64_t removed_ = 0;
  bool has_begun_ = false;
  bool is_directory_ = false;
  bool is_directory_asked_for_ = false;  // the path had a slash at its end
  bool removed_here_ = false;            // since the directory was last read from its beginning
  unsigned batches_here_ = 0;
};

task<std::uint64_t> remove_tree(std::string path) {
  removal all{std::move(path)};
  bool is_done = false;
  const auto go_on = [&] { return all.go_on(is_done); };
  while (!is_done) {
    const int refused = co_await blocking(go_on);
    if (refused != 0) co_await fail_with(error{system_error(refused), "remove a directory", all.path()});
  }
  co_return all.removed();
}

}  // namespace

async_generator<directory_entry> directory(directory_options options, std::string_view path) {
  return list(listing{options, std::string{path}});
}

task<std::uint64_t> remove_all(std::string_view path) { return remove_tree(std::string{path}); }

// ---- temporary directories --------------------------------------------------------------------------------------------------

task<temporary_directory> temporary_directory::make(std::string pattern) {
  const auto call = [&] { return ::mkdtemp(pattern.data()) != nullptr ? 0 : errno; };
  int refused = EINVAL;
  if (!has_nul(pattern)) refused = co_await blocking(call);
  if (refused != 0) co_await fail_with(error{system_error(refused), "make a temporary directory", pattern});
  temporary_directory made;
  made.path_ = std::move(pattern);
  made.maker_ = ::getpid();
  co_return made;
}

task<temporary_directory> make_temporary_directory(const temporary_directory_options& options) {
  std::string pattern{options.in};
  if (pattern.empty()) {
    const char* const by_environment = std::getenv("TMPDIR");
    pattern = by_environment != nullptr && *by_environment != '\0' ? by_environment : "/tmp";
  }
  pattern.append("/").append(options.prefix).append("XXXXXX");
  return temporary_directory::make(std::move(pattern));
}

task<> temporary_directory::remove() {
  if (path_.empty() || maker_ != ::getpid()) co_return;
  co_await nothrow(remove_all(path_));
  path_.clear();
}

void temporary_directory::remove_now() noexcept {
  if (maker_ != ::getpid() || ::rmdir(path_.c_str()) == 0) return;  // an empty directory goes without an allocation
  try {
    removal all{std::exchange(path_, {})};
    for (bool is_done = false; !is_done;)
      if (all.go_on(is_done) != 0) return;
  } catch (const std::bad_alloc&) {  // the directory stays
  }
}

}  // namespace weft::fs
