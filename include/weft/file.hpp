// What is in files: read, written and made durable, without a worker that waits for a disk.
//
//     w::task<> append_line(std::string_view path, std::string_view line) {
//       w::file log = co_await w::file::open({.read = false, .write = true, .create = true}, path);
//       co_await log.append(line);
//       co_await log.sync_data();
//     }
//
// An operation takes the first of three ways that can do it. A read of the page cache, and a write into it where the file
// system allows that, is tried at once: the system says if it would have to wait for the disk. Otherwise the operation goes to
// the io_uring of its worker. Where that has none, or where io_uring can't do it, it runs on the process's pool of threads for
// blocking calls (blocking.hpp). So a slow disk delays the task that waits for it, and no worker. runtime::explain() says which
// ways a runtime has.
//
// What holds for all operations:
//
//   Threads   any number of operations at once, on any threads: each is given an offset. They work in tasks, in fibers and on
//             plain threads.
//   Cancel    an operation that is stopped before it has begun has no effect. Once it has begun, the system uses the caller's
//             memory, so the operation ends only when the system has returned that: io_uring cancels it unless the disk has
//             begun, a thread finishes it. An operation that was finished gives its result, also after a stop.
//   Fails     with the system's error (no_space_on_device, io_error, file_too_large, ...), as an `error` that names the
//             operation; with errc::closed where the file is not open; with std::bad_alloc. as_result() takes the error without
//             a throw.
//   Lifetime  a file outlives its operations, and so does the memory that they are given.
//   Units     sizes and offsets are in bytes.
//   Cost      tried at once: one system call. By io_uring: a part of one, since several share it. By a thread: two changes of
//             thread, some microseconds.
//
// Rejected: (a) the file's own position: tasks that read one file would share it; a file_reader has its own. (b) Reads that end
// where the cache does: each caller would need a loop. (c) A thread for each operation: 4 to 10 us for a read of what is in
// memory, instead of 0.9 (docs/measurements/files.md).
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
  bool create = false;     ///< makes the file if there is none
  bool exclusive = false;  ///< with `create`, which it needs: fails with file_exists if there is a file
  bool truncate = false;   ///< empties the file
  bool append = false;     ///< each write goes to the end, whoever else writes: of the writes only append() may be used
  bool direct = false;     ///< without the page cache (O_DIRECT): see file::alignment()
  unsigned permissions = 0666;  ///< of a file that it makes, less the process's umask
};

/// What the system knows about an open file.
struct file_status {
  using time_point = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
  std::uint64_t size = 0;       ///< bytes
  std::uint64_t allocated = 0;  ///< bytes that it occupies on its disk
  unsigned permissions = 0;     ///< the lowest twelve bits of its mode
  bool is_regular = false;
  unsigned user = 0, group = 0;
  std::uint64_t links = 0;              ///< how many names it has
  std::uint64_t device = 0, inode = 0;  ///< both together identify the file
  time_point accessed, modified, changed;
};

/// What direct I/O (O_DIRECT) requires, in bytes: addresses are multiples of `memory`, offsets and sizes of `offset`. Zero: not
/// known; the system then checks.
struct direct_alignment {
  std::size_t memory = 0, offset = 0;
};

/// Which bytes of a file are locked, and how.
struct lock_range {
  bool shared = false;       ///< a reader's lock, which excludes only those that are not shared
  std::uint64_t offset = 0;  ///< its first byte
  std::uint64_t size = 0;    ///< in bytes; 0: to the end of the file, also when that grows
};

/// Memory with an aligned address, as direct I/O requires, filled with zeros at first.
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

/// A lock of a file, or of a part of it. Its destructor gives it back.
///
/// It is advisory: it excludes others that ask for a lock, in any process and also by the same `file`, but no read and no
/// write. A copy of it in a child of fork() gives nothing back.
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
  void unlock() noexcept;  ///< gives it back now; does nothing where is_held() is false
  bool is_held() const noexcept { return at_ != nullptr; }  ///< false: made without a lock, moved from, or unlocked

 private:
  friend class file;
  file_lock(detail::open_file& of, std::uint64_t begin, std::uint64_t end, bool is_shared) noexcept;
  detail::open_file* at_ = nullptr;
  std::uint64_t begin_ = 0, end_ = 0;
  int holder_ = 0;  // the process that got it
  bool is_shared_ = false;
};

/// An open file. What holds for all of its operations stands at the top of file.hpp.
///
/// Its destructor closes it on the calling thread and ignores an error of that. A program that has written to it therefore
/// awaits close(), or sync(), before. On a worker of a runtime, a file without a name (see temporary()), or whose name was removed,
/// is closed by a thread of the blocking pool, since the system then deletes its contents.
class file {
 public:
  /// Makes a `file` that is not open: every operation fails with errc::closed.
  file() noexcept = default;
  file(file&& other) noexcept : at_{std::exchange(other.at_, nullptr)} {}
  file& operator=(file&& other) noexcept {
    file old{std::move(*this)};
    at_ = std::exchange(other.at_, nullptr);
    return *this;
  }
  ~file();

  // ---- opening and closing

  /// Opens a file. Without options it opens an existing file for reading. The descriptor is close-on-exec.
  ///
  /// Suspends  always. A named pipe is opened when another process has opened its other end.
  /// Cancel    as all operations; a file that it has made stays. A thread that opens without `.create` and `.truncate` is
  ///           abandoned, as by blocking(abandon_on_stop, ...): what it opens later is closed.
  /// Fails     with the system's error: no_such_file_or_directory, permission_denied, file_exists, is_a_directory; with
  ///           invalid_argument for options that contradict each other, a path with a zero byte, a file system without direct I/O.
  WEFT_COROUTINE_TAKES_OVER static task<file> open(file_options how, std::string_view path) {
    return open_as(how, std::string{path});
  }
  WEFT_COROUTINE_TAKES_OVER static task<file> open(std::string_view path) { return open({}, path); }
  /// Makes a file without a name in `directory`, open for reading and writing. Closing it deletes it. On a file system that has
  /// no files without a name, it has one until it is open. Fails as open().
  WEFT_COROUTINE_TAKES_OVER static task<file> temporary(std::string_view directory = "/tmp") {
    return make_temporary(std::string{directory});
  }
  /// Takes over a descriptor, which becomes close-on-exec. Does not suspend. Throws error or std::bad_alloc; the descriptor is
  /// then still the caller's.
  static file adopt(int number);

  /// Whether it has a file: not after it was moved from, released or closed.
  bool is_open() const noexcept { return at_ != nullptr; }
  /// Its descriptor, for calls such as stream::send_file(); it still belongs to this `file`. -1: it is not open.
  int native_handle() const noexcept;
  /// Gives its descriptor to the caller, who closes it. Only while no operation is under way.
  [[nodiscard("the descriptor is nobody's then")]] int release() noexcept;
  /// Closes the file, and fails where the system does: on some file systems only then an earlier write is known to be lost.
  ///
  /// Suspends  always.
  /// Cancel    a call that is stopped before it has begun leaves the file open; any other closes it.
  /// Misuse    ends the program with a sentence while an operation is under way or a lock of it is held.
  task<> close();

  // ---- reading

  /// Reads from `offset` on until `into` is full or the file ends, and gives how many bytes it has read. 0: nothing lies behind
  /// `offset`, or `into` is empty.
  ///
  /// Suspends  where the bytes are not in the page cache; now and then also where they are, so that other tasks run.
  WEFT_COROUTINE_WRAPPER task<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) const {
    return read_one(at_, offset, into);
  }
  /// The same into several parts, which are filled one after the other. The array of parts outlives the operation, too.
  WEFT_COROUTINE_WRAPPER task<std::size_t> read_at(std::uint64_t offset,
                                                   std::span<const std::span<std::byte>> parts) const {
    return read_many(at_, offset, parts);
  }

  // ---- writing

  /// Writes all of `data` at `offset`. An `offset` behind the end lengthens the file: what lies between reads as zeros.
  ///
  /// Suspends  where the file system can't take the bytes without waiting; now and then also where it can.
  /// Cancel    a write that is stopped after it has begun, or that fails, may have written a first part of `data`. The same
  ///           write may be repeated. write_some_at() says how much it has written.
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
  /// Writes a first part of `data`, not empty unless that is, and gives its size. It is all of it unless the disk fills up.
  ///
  /// Cancel    a call that ends stopped, or fails, has written nothing.
  WEFT_COROUTINE_WRAPPER task<std::size_t> write_some_at(std::uint64_t offset, std::span<const std::byte> data) const {
    return write_some(at_, offset, data);
  }
  /// Writes all of `data` at the end of the file, wherever that is by then. Up to 4 MiB are written in one piece, unless the
  /// disk fills up: the appends of several tasks or processes do not mix.
  ///
  /// Cancel    as write_at(); a part that was appended stays.
  WEFT_COROUTINE_WRAPPER task<> append(std::span<const std::byte> data) const { return append_one(at_, data); }
  WEFT_COROUTINE_WRAPPER task<> append(std::string_view text) const { return append(std::as_bytes(std::span{text})); }

  // ---- the file as a whole

  /// Waits until all that was written to the file, and its status, are on the disk (fsync). The name of a new file may still be
  /// missing in its directory after a crash: see replace_file().
  ///
  /// Suspends  always, as all that follow.
  /// Fails     with io_error where some of it could not be written. The system reports that once and drops the data.
  WEFT_COROUTINE_WRAPPER task<> sync() const { return sync_file(at_, false); }
  /// The same, without status that a reader does not need, such as times (fdatasync).
  WEFT_COROUTINE_WRAPPER task<> sync_data() const { return sync_file(at_, true); }
  /// Makes the file `size` bytes long: cuts it, or lengthens it with zeros.
  WEFT_COROUTINE_WRAPPER task<> truncate(std::uint64_t size) const { return set_size(at_, size); }
  /// Reserves room on the disk for `size` bytes from `offset` on, so that a write there can't fail for lack of it. The file
  /// grows if they lie behind its end.
  WEFT_COROUTINE_WRAPPER task<> allocate(std::uint64_t offset, std::uint64_t size) const {
    return take_room(at_, offset, size);
  }
  /// Gives what the system knows about the file.
  WEFT_COROUTINE_WRAPPER task<file_status> stat() const { return status_of(at_); }
  /// Gives the size of the file, in bytes.
  WEFT_COROUTINE_WRAPPER task<std::uint64_t> size() const { return size_of(at_); }

  /// Gives what memory, offsets and sizes must be multiples of, where the file was opened for direct I/O: otherwise an
  /// operation fails with invalid_argument and says which one is not. An aligned_buffer has such memory. Does not suspend.
  direct_alignment alignment() const noexcept;

  // ---- locks

  /// Locks a part of the file, or all of it; waits while others hold a lock that excludes this one. A lock that is not `shared`
  /// needs a file that is open for writing.
  ///
  /// Suspends  always. The system does not tell when a lock is given back, so it is tried again after 1 ms, and then after up
  ///           to 32 ms. Waiters are not served in the order in which they came.
  /// Cancel    ends without a lock.
  ///
  /// Rejected: a thread that waits in the system (F_OFD_SETLKW). A stop could not end its wait, and 64 such threads would
  /// occupy the whole blocking pool.
  WEFT_COROUTINE_WRAPPER task<file_lock> lock(lock_range what = {}) const { return lock_when_free(at_, what); }
  /// The same without waiting for others: gives std::nullopt where one of them holds a lock that excludes this one.
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

/// Reads a file from front to end by a position of its own: an io::reader, for io::buffered_reader and io::copy. The `file`
/// outlives it, and is not moved meanwhile.
class file_reader {
 public:
  /// Reads from `offset` on, in bytes.
  explicit file_reader(const file& from, std::uint64_t offset = 0) noexcept : from_{&from}, position_{offset} {}
  /// Reads as file::read_at() from its position on, and moves that by as much. 0: the end of the file; a later call reads what
  /// was written there meanwhile.
  ///
  /// Cancel  a stopped call has not moved the position.
  /// Misuse  two tasks that read at once may get the same bytes.
  task<std::size_t> read(std::span<std::byte> into);
  std::uint64_t position() const noexcept { return position_; }     ///< the offset of the next read, in bytes
  void seek(std::uint64_t offset) noexcept { position_ = offset; }  ///< the next read begins there

 private:
  const file* from_;
  std::uint64_t position_;
};

/// Writes a file by a position of its own: an io::writer, for io::buffered_writer and io::copy. The `file` outlives it, and is
/// not moved meanwhile.
class file_writer {
 public:
  /// Writes from `offset` on, in bytes.
  explicit file_writer(const file& to, std::uint64_t offset = 0) noexcept : to_{&to}, position_{offset} {}
  /// Writes as file::write_some_at() at its position, and moves that by as much.
  task<std::size_t> write_some(std::span<const std::byte> data);
  /// Writes all of `data` at its position. A write that is stopped or fails moves the position behind what it has written, so
  /// the writer can be used again.
  task<> write(std::span<const std::byte> data);
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) { return write(std::as_bytes(std::span{text})); }
  std::uint64_t position() const noexcept { return position_; }     ///< the offset of the next write, in bytes
  void seek(std::uint64_t offset) noexcept { position_ = offset; }  ///< the next write begins there

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

/// Reads a whole file. Also works where the system gives no size, as in /proc.
///
/// Suspends  always. Cancel and cost are those of all operations on files.
/// Fails     as file::open() and file::read_at(); with file_too_large where there are more than `limit` bytes.
WEFT_COROUTINE_TAKES_OVER inline task<std::string> read_file(std::string_view path,
                                                             std::size_t limit = std::size_t{1} << 30) {
  return detail::read_whole(std::string{path}, limit);
}

/// Writes `data` to a file, in place of what was in it. A reader, or a crash, may find a part, unlike with replace_file().
///
/// Suspends  always.
/// Cancel    a call that is stopped after it has begun, or fails, leaves the file empty or with a part of `data`.
/// Lifetime  `data` outlives the task; `path` is copied.
WEFT_COROUTINE_TAKES_OVER inline task<> write_file(std::string_view path, std::string_view data,
                                                   unsigned permissions = 0666) {
  return detail::write_whole(std::string{path}, data, permissions);
}

/// Replaces a file by one with `data` in it, atomically: whoever opens the path finds the whole old file or the whole new one,
/// also after a crash. When this has returned, the new one is on the disk.
///
/// The new file is written in the same directory, as `.NAME.` and sixteen digits, and then renamed. It has the permissions of
/// the old file without set-user-ID, set-group-ID and the sticky bit, its access control list and its group, or `permissions`
/// where there was none. Where the writer may not give it the list or the group, the group and those in the list may do nothing
/// with it. Other extended attributes are not kept. The writer owns it. A symbolic link at the path is replaced, not followed.
///
/// Suspends  always.
/// Cancel    a call that is stopped, or fails, before the rename has no effect and removes what it has written.
/// Fails     as file::open() and file::write_at(). If only the sync of the directory fails, the new file is there, but perhaps
///           not yet on the disk.
/// Lifetime  `data` outlives the task; `path` is copied.
/// Cost      two waits for the disk.
WEFT_COROUTINE_TAKES_OVER inline task<> replace_file(std::string_view path, std::string_view data,
                                                     unsigned permissions = 0666) {
  return detail::replace_whole(std::string{path}, data, permissions);
}

}  // namespace weft
