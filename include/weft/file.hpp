// What is in files: read, written and made durable, without a worker that waits for a disk.
//
//     w::task<> append_line(std::string_view path, std::string_view line) {
//       w::file log = co_await w::file::open({.read = false, .write = true, .create = true}, path);
//       co_await log.append(line);
//       co_await log.sync_data();
//     }
//
// An operation is tried at once where the system can say that it would have to wait (reads from the page cache, and writes into it
// where the file system allows that). Else it goes by the ring of the worker that it runs on; where there is none, and for what rings
// do not do, by the process's pool of threads for calls that block (blocking.hpp). So a slow disk holds up whoever waits for it,
// and no worker. runtime::explain() says which of these a runtime has.
//
// What holds for all operations:
//
//   Threads   any number at once, on any threads: each has an offset of its own. All work in tasks, in fibers and on plain threads.
//   Cancel    one that is stopped before it has begun has had no effect. The system has the memory of one that has begun: a ring is
//             asked to cancel it, which it does as long as the disk has not begun; else, and on a thread, it is waited for. Then it
//             has happened, and what it gives is not lost.
//   Fails     with an error of the system's (no_space_on_device, io_error, file_too_large, ...), as an `error` that names the
//             operation; with `closed` where the file is not open. std::bad_alloc. as_result gets it without a throw.
//   Lifetime  a file outlives its operations, and so does the memory that is given to them.
//   Cost      of what is tried at once a system call; by a ring a part of one; by a thread two hand-overs, some microseconds.
//
// Rejected: (a) the file's own position, which the tasks that read it would share; a file_reader has one. (b) Reads that end with
// what is cached: each caller would need a loop. (c) To leave all to threads: 4 to 10 us a read of what is in memory,
// beside 0.9 (tokio's; docs/measurements/files.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft {

namespace detail {
class open_file;
struct file_access;
}  // namespace detail

/// How a file is opened. `{.write = true, .create = true}`
struct file_options {
  bool read = true;
  bool write = false;
  bool create = false;          ///< where there is none
  bool exclusive = false;       ///< fails with file_exists where there is one; makes one, so it needs `create`
  bool truncate = false;        ///< what was in it is gone
  bool append = false;          ///< all writes go to its end, whoever else writes: append() alone may be used
  bool direct = false;          ///< past the page cache: see file::alignment()
  unsigned permissions = 0666;  ///< of one that is made, less what the process's umask takes away
};

/// What the system knows of a file.
struct file_status {
  using time_point = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
  std::uint64_t size = 0;
  std::uint64_t allocated = 0;  ///< bytes that it takes of its disk
  unsigned permissions = 0;     ///< the lowest twelve bits of its mode
  bool is_regular = false;
  unsigned user = 0, group = 0;
  std::uint64_t links = 0;
  std::uint64_t device = 0, inode = 0;  ///< which together are another file's never
  time_point accessed, modified, changed;
};

/// What O_DIRECT asks of memory, and of offsets and sizes: multiples of these. Zero: not known, and the system decides.
struct direct_alignment {
  std::size_t memory = 0, offset = 0;
};

/// Which bytes a lock is for.
struct lock_range {
  bool shared = false;       ///< with others that are shared, too
  std::uint64_t offset = 0;  ///< from here on
  std::uint64_t size = 0;    ///< 0: to the end, wherever that will be
};

/// Memory whose begin is aligned, as direct I/O wants it; filled with zeros.
class aligned_buffer {
 public:
  aligned_buffer() noexcept = default;
  /// `alignment` is a power of two. Throws std::bad_alloc.
  explicit aligned_buffer(std::size_t size, std::size_t alignment = 4096);

  /// All its bytes, as long as it lives.
  std::span<std::byte> bytes() noexcept { return {memory_.get(), size_}; }
  std::span<const std::byte> bytes() const noexcept { return {memory_.get(), size_}; }
  operator std::span<std::byte>() noexcept { return bytes(); }              // NOLINT: stands for it
  operator std::span<const std::byte>() const noexcept { return bytes(); }  // NOLINT: as above
  std::size_t size() const noexcept { return size_; }

 private:
  struct frees {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, frees> memory_;
  std::size_t size_ = 0;
};

/// A lock of a file, or of a part of it. It goes with this, or with unlock().
///
/// It keeps out whoever asks for one, in any process, by the same `file` too; it hinders no read and no write. A copy that fork()
/// makes unlocks nothing.
class [[nodiscard("the lock goes with this")]] file_lock {
 public:
  file_lock() noexcept = default;
  file_lock(file_lock&& other) noexcept
      : at_{std::exchange(other.at_, nullptr)},
        begin_{other.begin_},
        end_{other.end_},
        holder_{other.holder_},
        is_shared_{other.is_shared_} {}
  file_lock& operator=(file_lock&& other) noexcept {
    file_lock old{std::move(*this)};
    at_ = std::exchange(other.at_, nullptr);
    begin_ = other.begin_;
    end_ = other.end_;
    holder_ = other.holder_;
    is_shared_ = other.is_shared_;
    return *this;
  }
  ~file_lock() { unlock(); }
  void unlock() noexcept;                                   ///< nothing if it holds none
  bool is_held() const noexcept { return at_ != nullptr; }  ///< false: of none, moved from, or unlocked

 private:
  friend class file;
  file_lock(detail::open_file& of, std::uint64_t begin, std::uint64_t end, bool is_shared) noexcept;
  detail::open_file* at_ = nullptr;
  std::uint64_t begin_ = 0, end_ = 0;
  int holder_ = 0;  // the process that got it
  bool is_shared_ = false;
};

/// An open file. What holds for its operations stands at the top of file.hpp.
///
/// Destroyed, it is closed on the calling thread, and what closing it fails with is lost: who has written awaits close(), or
/// sync() before.
class file {
 public:
  /// None: every operation fails with `closed`.
  file() noexcept = default;
  file(file&& other) noexcept : at_{std::exchange(other.at_, nullptr)} {}
  file& operator=(file&& other) noexcept {
    file old{std::move(*this)};
    at_ = std::exchange(other.at_, nullptr);
    return *this;
  }
  ~file();

  // ---- opening and closing

  /// Opens a file; without options one that is there, to read it. It is close-on-exec.
  ///
  /// Suspends  always. What is no file, as a pipe with a name, may have to be waited for.
  /// Cancel    as above; one that was made stays.
  /// Fails     as the system says: no_such_file_or_directory, permission_denied, file_exists, is_a_directory; invalid_argument
  ///           where the options make no sense, the path has a zero in it, or its file system has no direct I/O.
  WEFT_COROUTINE_TAKES_OVER static task<file> open(file_options how, std::string_view path) {
    return open_as(how, std::string{path});
  }
  WEFT_COROUTINE_TAKES_OVER static task<file> open(std::string_view path) { return open({}, path); }
  /// A file without a name, in that directory, which is gone when it is closed; to be read and written.
  ///
  /// Fails     as open(). Where a file system has no files without a name, it has one for a moment.
  WEFT_COROUTINE_TAKES_OVER static task<file> temporary(std::string_view directory = "/tmp") {
    return make_temporary(std::string{directory});
  }
  /// Takes over a descriptor, which becomes close-on-exec. Throws error, or std::bad_alloc; then it is the caller's still.
  static file adopt(int number);

  /// False: made without a file, moved from, or closed.
  bool is_open() const noexcept { return at_ != nullptr; }
  /// Its descriptor, which stays its own, as for stream::send_file(); -1: none.
  int native_handle() const noexcept;
  /// Gives its descriptor to the caller; where nothing else is under way.
  [[nodiscard("the descriptor is nobody's then")]] int release() noexcept;
  /// Closes it, and tells what that fails with: of some file systems, that what was written is lost.
  ///
  /// Cancel    one that is stopped before it has begun leaves it open. After that it is closed, and never waited for in vain.
  /// Misuse    while an operation on it is under way, or a lock of it held, it ends the program with a sentence.
  task<> close();

  // ---- reading

  /// Fills `into` from `offset` on. Gives how many bytes that were: fewer only where the file ends.
  ///
  /// Suspends  where they are not in memory, and now and then where they are, so that others run.
  WEFT_COROUTINE_WRAPPER task<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) const {
    return read_one(at_, offset, into);
  }
  /// The same into several parts, one behind the other. The array of parts stays, too.
  WEFT_COROUTINE_WRAPPER task<std::size_t> read_at(std::uint64_t offset,
                                                   std::span<const std::span<std::byte>> parts) const {
    return read_many(at_, offset, parts);
  }

  // ---- writing

  /// Writes all of it at `offset`, behind the end, too: what lies between reads as zeros.
  ///
  /// Cancel    one that is stopped after it has begun has perhaps written a part, from its front on; likewise one that fails. The
  ///           same write again puts it right. Who has to know how much uses write_some_at().
  WEFT_COROUTINE_WRAPPER task<> write_at(std::uint64_t offset, std::span<const std::byte> data) const {
    return write_one(at_, offset, data);
  }
  WEFT_COROUTINE_WRAPPER task<> write_at(std::uint64_t offset, std::string_view text) const {
    return write_at(offset, std::as_bytes(std::span{text}));
  }
  WEFT_COROUTINE_WRAPPER task<> write_at(std::uint64_t offset,
                                         std::span<const std::span<const std::byte>> parts) const {
    return write_many(at_, offset, parts);
  }
  /// Writes some of it, at least a byte, unless it is empty; fewer than all where the disk fills up. Gives how many.
  ///
  /// Cancel    what it has written it gives: one that ends stopped, or fails, has written nothing.
  WEFT_COROUTINE_WRAPPER task<std::size_t> write_some_at(std::uint64_t offset, std::span<const std::byte> data) const {
    return write_some(at_, offset, data);
  }
  /// Writes all of it at the end, wherever that is then, in one piece unless the disk fills up meanwhile or it has more than
  /// 4 MiB: appends of several do not mix.
  ///
  /// Cancel    as write_at(); what was appended stays.
  WEFT_COROUTINE_WRAPPER task<> append(std::span<const std::byte> data) const { return append_one(at_, data); }
  WEFT_COROUTINE_WRAPPER task<> append(std::string_view text) const { return append(std::as_bytes(std::span{text})); }

  // ---- the file as a whole

  /// Returns when all that was written before is on the disk, and what is known of the file. Other files' data, and the names in
  /// its directory, may not be: see replace_file().
  ///
  /// Fails     with io_error where some of it could not be written. The system tells that once, and has dropped it.
  WEFT_COROUTINE_WRAPPER task<> sync() const { return sync_file(at_, false); }
  /// The same without what is not needed to read it, such as its times.
  WEFT_COROUTINE_WRAPPER task<> sync_data() const { return sync_file(at_, true); }
  /// Cuts it, or lengthens it by zeros.
  WEFT_COROUTINE_WRAPPER task<> truncate(std::uint64_t size) const { return set_size(at_, size); }
  /// Takes room on the disk for these bytes, so that writes there do not lack it. It grows where they go beyond its end.
  WEFT_COROUTINE_WRAPPER task<> allocate(std::uint64_t offset, std::uint64_t size) const {
    return take_room(at_, offset, size);
  }
  WEFT_COROUTINE_WRAPPER task<file_status> stat() const { return status_of(at_); }
  WEFT_COROUTINE_WRAPPER task<std::uint64_t> size() const { return size_of(at_); }

  /// Of a file that was opened for direct I/O: memory, offsets and sizes are multiples of these, else an operation fails with
  /// invalid_argument, and says which is none. An aligned_buffer has such memory.
  direct_alignment alignment() const noexcept;

  // ---- locks

  /// Waits until nobody else has a lock that this one excludes. One that is not `shared` needs a file that can be written.
  ///
  /// Suspends  always. Nothing tells when a lock is given back, so it is tried again after 1 ms, and then after up to 32 ms: who
  ///           comes first is not served first.
  /// Cancel    has no lock.
  ///
  /// Rejected: a thread that waits in the system (F_OFD_SETLKW). No stop could free it, and 64 that wait would hold up all calls that
  /// block.
  WEFT_COROUTINE_WRAPPER task<file_lock> lock(lock_range what = {}) const { return lock_when_free(at_, what); }
  /// None: somebody else has a lock that this one excludes. Waits for no other lock.
  WEFT_COROUTINE_WRAPPER task<std::optional<file_lock>> try_lock(lock_range what = {}) const {
    return lock_if_free(at_, what);
  }

 private:
  friend detail::file_access;
  explicit file(detail::open_file& at) noexcept : at_{&at} {}
  static task<file> open_as(file_options how, std::string path);
  static task<file> make_temporary(std::string directory);
  static task<std::size_t> read_one(detail::open_file* at, std::uint64_t offset, std::span<std::byte> into);
  static task<std::size_t> read_many(detail::open_file* at, std::uint64_t offset,
                                     std::span<const std::span<std::byte>> parts);
  static task<> write_one(detail::open_file* at, std::uint64_t offset, std::span<const std::byte> data);
  static task<> write_many(detail::open_file* at, std::uint64_t offset,
                           std::span<const std::span<const std::byte>> parts);
  static task<std::size_t> write_some(detail::open_file* at, std::uint64_t offset, std::span<const std::byte> data);
  static task<> append_one(detail::open_file* at, std::span<const std::byte> data);
  static task<> sync_file(detail::open_file* at, bool only_data);
  static task<> set_size(detail::open_file* at, std::uint64_t size);
  static task<> take_room(detail::open_file* at, std::uint64_t offset, std::uint64_t size);
  static task<file_status> status_of(detail::open_file* at);
  static task<std::uint64_t> size_of(detail::open_file* at);
  static task<file_lock> lock_when_free(detail::open_file* at, lock_range what);
  static task<std::optional<file_lock>> lock_if_free(detail::open_file* at, lock_range what);

  detail::open_file* at_ = nullptr;
};

/// Reads a file from its front to its end, by a position of its own. A reader, for io::buffered_reader and io::copy. The file stays
/// where it is until then.
class file_reader {
 public:
  /// Reads from `offset` on, in bytes.
  explicit file_reader(const file& from, std::uint64_t offset = 0) noexcept : from_{&from}, position_{offset} {}
  /// Fills `into`. 0: at the end; what is written there later is read by a later call.
  ///
  /// Cancel  has moved nothing.
  /// Misuse  two tasks that read at once get the same.
  task<std::size_t> read(std::span<std::byte> into);
  std::uint64_t position() const noexcept { return position_; }
  void seek(std::uint64_t offset) noexcept { position_ = offset; }

 private:
  const file* from_;
  std::uint64_t position_;
};

/// Writes a file, by a position of its own. A writer, for io::buffered_writer and io::copy. The file stays where it is until then.
class file_writer {
 public:
  /// Writes from `offset` on, in bytes.
  explicit file_writer(const file& to, std::uint64_t offset = 0) noexcept : to_{&to}, position_{offset} {}
  /// As file::write_some_at().
  task<std::size_t> write_some(std::span<const std::byte> data);
  /// Writes all of it. One that ends early has moved the position behind what it has written: so a writer is not closed then.
  task<> write(std::span<const std::byte> data);
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) { return write(std::as_bytes(std::span{text})); }
  std::uint64_t position() const noexcept { return position_; }
  void seek(std::uint64_t offset) noexcept { position_ = offset; }

 private:
  const file* to_;
  std::uint64_t position_;
};

// ---- whole files ----------------------------------------------------------------------------------------------------------

namespace detail {
task<std::string> read_whole(std::string path, std::size_t limit);
task<> write_whole(std::string path, std::string_view data, unsigned permissions);
task<> replace_whole(std::string path, std::string_view data, unsigned permissions);
}  // namespace detail

/// All that is in a file, also of one that says nothing of its size, as in /proc.
///
/// Fails     as file::open() and file::read_at(); with file_too_large where it has more than `limit` bytes.
WEFT_COROUTINE_TAKES_OVER inline task<std::string> read_file(std::string_view path,
                                                             std::size_t limit = std::size_t{1} << 30) {
  return detail::read_whole(std::string{path}, limit);
}

/// Writes a file that has this in it and nothing else; in place, so that a reader, or a crash, may find a part. `data` stays.
///
/// Cancel    one that has begun leaves a file that is empty, or has a part of it; so does one that fails.
WEFT_COROUTINE_TAKES_OVER inline task<> write_file(std::string_view path, std::string_view data,
                                                   unsigned permissions = 0666) {
  return detail::write_whole(std::string{path}, data, permissions);
}

/// Has a file replaced by one that has this in it: whoever opens it finds the old one or the new one, whole, also after a crash.
/// When this has returned it is the new one, on the disk. `data` stays.
///
/// It is written beside it, as `.NAME.` and sixteen digits, and then renamed. The new one has the permissions of the old one
/// without set-user-ID, set-group-ID and the sticky bit, or `permissions` where there was none, and whoever writes owns it. A link at that path is replaced itself.
///
/// Cancel    before it is renamed there is no effect, and what was written beside it is removed; likewise where it fails.
/// Fails     as file::open() and file::write_at(). Where only the directory could not be synced, the new one is there, perhaps not on
///           the disk.
/// Cost      two waits for the disk.
WEFT_COROUTINE_TAKES_OVER inline task<> replace_file(std::string_view path, std::string_view data,
                                                     unsigned permissions = 0666) {
  return detail::replace_whole(std::string{path}, data, permissions);
}

}  // namespace weft
