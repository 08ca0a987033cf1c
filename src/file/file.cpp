// Opens and closes files, and operates on a file as a whole. Reads and writes are in file_moves.cpp.
#include <weft/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <weft/blocking.hpp>
#include <weft/clock.hpp>
#include <weft/env.hpp>
#include <weft/executor.hpp>
#include <weft/nothrow.hpp>
#include <weft/with.hpp>

#include "file/file_access.hpp"
#include "file/file_calls.hpp"
#include "file/open_file.hpp"
#include "io/io_service.hpp"

namespace weft {

using detail::file_error;
using detail::file_request;
using detail::file_use;
using detail::open_file;
using detail::perform_elsewhere;

// ---- memory ---------------------------------------------------------------------------------------------------------------

aligned_buffer::aligned_buffer(std::size_t size, std::size_t alignment) : size_{size} {
  WEFT_EXPECTS(alignment != 0 && (alignment & (alignment - 1)) == 0,
               "an aligned_buffer was asked for whose alignment is no power of two");
  void* memory = nullptr;
  if (::posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<std::size_t>(size, 1)) != 0)
    throw std::bad_alloc{};
  std::memset(memory, 0, size);
  memory_.reset(static_cast<std::byte*>(memory));
}

void aligned_buffer::frees::operator()(std::byte* memory) const noexcept { std::free(memory); }

// ---- opening --------------------------------------------------------------------------------------------------------------

namespace {

// STATX_DIOALIGN is not in the headers of older systems.
#ifdef STATX_DIOALIGN
direct_alignment alignment_of(int number) noexcept {
  struct statx what{};
  if (::statx(number, "", AT_EMPTY_PATH, STATX_DIOALIGN, &what) != 0 || (what.stx_mask & STATX_DIOALIGN) == 0)
    return {};
  return {what.stx_dio_mem_align, what.stx_dio_offset_align};
}
#else
direct_alignment alignment_of(int) noexcept { return {}; }
#endif

int flags_of(const file_options& how) noexcept {
  int flags = O_CLOEXEC | O_NOCTTY | (how.write ? (how.read ? O_RDWR : O_WRONLY) : O_RDONLY);
  if (how.create) flags |= O_CREAT;
  if (how.exclusive) flags |= O_EXCL;
  if (how.truncate) flags |= O_TRUNC;
  if (how.append) flags |= O_APPEND;
  if (how.direct) flags |= O_DIRECT;
  return flags;
}

bool makes_sense(const file_options& how, std::string_view path) noexcept {
  if (!how.read && !how.write) return false;
  if ((how.create || how.truncate || how.append) && !how.write) return false;
  return (how.create || !how.exclusive) && path.find('\0') == path.npos;
}

constexpr const char* opens = "open a file";

}  // namespace

file detail::file_access::take_over(owned_number number, opened_as how) {
  const direct_alignment aligned = how.is_direct ? alignment_of(number.number()) : direct_alignment{};
  return file{*new open_file{number.give(), how, aligned}};  // the allocation throws before give()
}

task<file> detail::file_access::open(int flags, unsigned permissions, const std::string& path) {
  co_await check_stop();
  const file_request what{
      .what = file_request::kind::open, .path = path.c_str(), .flags = flags, .permissions = permissions};
  const int number = co_await perform_elsewhere(what);
  if (number < 0) co_await fail_with(file_error(-number, opens, path));
  co_return take_over(owned_number{number}, opened_as::of_flags(flags));
}

task<file> file::open_as(file_options how, std::string path) {
  if (!makes_sense(how, path)) co_await fail_with(file_error(EINVAL, opens, path));
  co_return co_await detail::file_access::open(flags_of(how), how.permissions, path);
}

namespace {

// Makes a temporary file on a file system without O_TMPFILE. Returns a number, or a negative error number.
int make_and_unlink(const std::string* directory) {
  std::string path = *directory + "/weft-XXXXXX";
  const int number = ::mkostemp(path.data(), O_CLOEXEC);
  if (number < 0) return -errno;
  if (::unlink(path.c_str()) == 0) return number;
  const int refused = errno;
  ::close(number);
  return -refused;
}

}  // namespace

task<file> file::make_temporary(std::string directory) {
  constexpr const char* makes = "make a temporary file";
  if (directory.find('\0') != directory.npos) co_await fail_with(file_error(EINVAL, makes, directory));
  co_await check_stop();
  const file_request what{.what = file_request::kind::open,
                          .path = directory.c_str(),
                          .flags = O_TMPFILE | O_RDWR | O_CLOEXEC,
                          .permissions = 0600};
  int number = co_await perform_elsewhere(what);
  // EISDIR: the system does not know O_TMPFILE, and takes it for O_DIRECTORY.
  if (number == -EOPNOTSUPP || number == -EISDIR) number = co_await blocking(make_and_unlink, &directory);
  if (number < 0) co_await fail_with(file_error(-number, makes, directory));
  co_return detail::file_access::take_over(detail::owned_number{number}, {.writes = true, .has_name = false});
}

file file::adopt(int number) {
  const int flags = ::fcntl(number, F_GETFL);
  const int of_number = flags < 0 ? -1 : ::fcntl(number, F_GETFD);
  if (of_number < 0 || ::fcntl(number, F_SETFD, of_number | FD_CLOEXEC) != 0) throw file_error(errno, "adopt a file");
  const auto how = detail::opened_as::of_flags(flags);
  const direct_alignment aligned = how.is_direct ? alignment_of(number) : direct_alignment{};
  return file{*new open_file{number, how, aligned}};
}

// Whether the file has no name, or none any more: when it is closed the system then frees what it has, which takes milliseconds,
// where that is much.
bool open_file::is_nameless() const noexcept {
  if (!how_.has_name) return true;
  struct statx known{};
  return ::statx(number(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &known) == 0 && known.stx_nlink == 0;
}

// A worker of a runtime leaves the close of a file without a name to the pool. Nobody else can open such a file, so nobody can tell
// that it is still open for a moment.
void open_file::end() noexcept {
  const executor* const where = number() >= 0 ? current_env().executor : nullptr;
  const detail::io_service* const of_runtime = where != nullptr ? where->io() : nullptr;
  if (of_runtime != nullptr && !of_runtime->is_inherited() && is_nameless() && detail::run_unawaited(*this)) return;
  delete this;
}

file::~file() {
  if (at_ != nullptr) at_->leave();
}

int file::native_handle() const noexcept { return at_ != nullptr ? at_->number() : -1; }

int file::release() noexcept {
  if (at_ == nullptr) return -1;
  WEFT_EXPECTS(!at_->is_used(), "a file was released while an operation on it is under way, or a lock of it is held");
  const int number = at_->give();
  std::exchange(at_, nullptr)->leave();
  return number;
}

direct_alignment file::alignment() const noexcept { return at_ != nullptr ? at_->aligned() : direct_alignment{}; }

task<> file::close() {
  constexpr const char* closes = "close a file";
  if (at_ == nullptr) co_await fail_with(error{make_error_code(errc::closed), closes});
  co_await check_stop();
  WEFT_EXPECTS(!at_->is_used(), "a file was closed while an operation on it is under way, or a lock of it is held");
  const bool may_take_long = at_->writes() || at_->is_nameless();
  detail::owned_number number{release()};  // its destructor closes the number if perform_elsewhere() can't begin
  const file_request what{.what = file_request::kind::close, .number = number.number(), .may_take_long = may_take_long};
  const int refused = co_await shielded(perform_elsewhere(what));
  number.give();
  if (refused < 0) co_await fail_with(file_error(-refused, closes));
}

// ---- the file as a whole --------------------------------------------------------------------------------------------------

namespace {

// Makes a call whose result is only whether it has failed.
task<> perform_whole(open_file* at, file_request what, const char* operation) {
  const file_use use{at};
  if (!use) co_await fail_with(error{make_error_code(errc::closed), operation});
  co_await check_stop();
  what.number = at->number();
  const int refused = co_await perform_elsewhere(what);
  if (refused < 0) co_await fail_with(file_error(-refused, operation));
}

constexpr bool is_offset(std::uint64_t offset) noexcept {
  return offset <= static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
}

file_status::time_point time_of(const statx_timestamp& when) noexcept {
  return file_status::time_point{std::chrono::seconds{when.tv_sec} + std::chrono::nanoseconds{when.tv_nsec}};
}

}  // namespace

task<> file::sync_file(open_file* at, bool only_data) {
  const auto what = only_data ? file_request::kind::sync_data : file_request::kind::sync;
  co_await nothrow(perform_whole(at, {.what = what}, "sync a file"));
}

task<> file::set_size(open_file* at, std::uint64_t size) {
  constexpr const char* cuts = "truncate a file";
  if (!is_offset(size)) co_await fail_with(file_error(EFBIG, cuts));
  co_await nothrow(perform_whole(at, {.what = file_request::kind::truncate, .size = size}, cuts));
}

task<> file::take_room(open_file* at, std::uint64_t offset, std::uint64_t size) {
  constexpr const char* takes = "allocate a file's room";
  if (!is_offset(offset) || !is_offset(size)) co_await fail_with(file_error(EFBIG, takes));
  if (size == 0) co_return;
  const file_request what{.what = file_request::kind::allocate, .offset = offset, .size = size};
  co_await nothrow(perform_whole(at, what, takes));
}

task<file_status> file::status_of(open_file* at) {
  struct statx found{};
  const file_request what{.what = file_request::kind::stat, .memory = &found};
  co_await nothrow(perform_whole(at, what, "ask about a file"));
  co_return file_status{
      .size = found.stx_size,
      .allocated = found.stx_blocks * 512,
      .permissions = found.stx_mode & 07777U,
      .is_regular = S_ISREG(found.stx_mode),
      .user = found.stx_uid,
      .group = found.stx_gid,
      .links = found.stx_nlink,
      .device = ::makedev(found.stx_dev_major, found.stx_dev_minor),
      .inode = found.stx_ino,
      .accessed = time_of(found.stx_atime),
      .modified = time_of(found.stx_mtime),
      .changed = time_of(found.stx_ctime),
  };
}

task<std::uint64_t> file::size_of(open_file* at) {
  const file_status found = co_await nothrow(status_of(at));
  co_return found.size;
}

// ---- locks ----------------------------------------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t without_end = std::numeric_limits<std::uint64_t>::max();

struct flock lock_of(short kind, const detail::lock_table::range& of) noexcept {
  struct flock what{};
  what.l_type = kind;
  what.l_whence = SEEK_SET;
  what.l_start = static_cast<off_t>(of.begin);
  what.l_len = of.end == without_end ? 0 : static_cast<off_t>(of.end - of.begin);
  return what;
}

}  // namespace

bool detail::lock_table::take(const range& what) {
  const std::lock_guard guard{lock_};
  for (const range& one : taken_)
    if (one.begin < what.end && what.begin < one.end && !(one.is_shared && what.is_shared)) return false;
  taken_.push_back(what);
  return true;
}

void detail::lock_table::give_back(const range& what, int number) noexcept {
  const std::lock_guard guard{lock_};
  // Any entry with these bounds will do: if there are several, all are shared.
  const auto same = [&](const range& one) { return one.begin == what.begin && one.end == what.end; };
  *std::ranges::find_if(taken_, same) = taken_.back();
  taken_.pop_back();
  for (std::uint64_t at = what.begin; at < what.end;) {
    std::uint64_t had_to = at;         // the end of the range from `at` on that other locks cover
    std::uint64_t free_to = what.end;  // if `at` is not covered: the end of the range that no lock covers
    for (const range& one : taken_) {
      if (one.begin <= at)
        had_to = std::max(had_to, one.end);
      else
        free_to = std::min(free_to, one.begin);
    }
    if (had_to == at) {
      struct flock part = lock_of(F_UNLCK, {at, free_to, false});
      ::fcntl(number, F_OFD_SETLK, &part);  // under lock_: a new lock of the range can come only after the unlock
      had_to = free_to;
    }
    at = had_to;
  }
}

file_lock::file_lock(open_file& of, std::uint64_t begin, std::uint64_t end, bool is_shared) noexcept
    : at_{&of}, begin_{begin}, end_{end}, holder_{::getpid()}, is_shared_{is_shared} {
  of.enter();
}

void file_lock::unlock() noexcept {
  if (at_ == nullptr) return;
  // The system's lock belongs to the open file description, which a forked child shares with its parent: so a child keeps it.
  if (holder_ == ::getpid()) at_->locks().give_back({begin_, end_, is_shared_}, at_->number());
  std::exchange(at_, nullptr)->leave();
}

task<std::optional<file_lock>> file::lock_if_free(open_file* at, lock_range range) {
  constexpr const char* locks = "lock a file";
  if (!is_offset(range.offset) || !is_offset(range.size)) co_await fail_with(file_error(EINVAL, locks));
  const detail::lock_table::range bytes{range.offset, range.size == 0 ? without_end : range.offset + range.size,
                                        range.shared};
  struct flock wanted = lock_of(range.shared ? F_RDLCK : F_WRLCK, bytes);
  const file_use use{at};
  if (!use) co_await fail_with(error{make_error_code(errc::closed), locks});
  co_await check_stop();
  if (!at->locks().take(bytes)) co_return std::nullopt;
  file_lock got{*at, bytes.begin, bytes.end, bytes.is_shared};  // also removes the range if the system refuses the lock
  const file_request what{.what = file_request::kind::lock, .number = at->number(), .memory = &wanted};
  const int refused = co_await perform_elsewhere(what);
  if (refused == -EAGAIN || refused == -EACCES) co_return std::nullopt;
  if (refused < 0) co_await fail_with(file_error(-refused, locks));
  co_return std::move(got);
}

task<file_lock> file::lock_when_free(open_file* at, lock_range range) {
  const file_use use{at};
  for (clock::duration delay = std::chrono::milliseconds{1};;) {
    std::optional<file_lock> got = co_await nothrow(lock_if_free(at, range));
    if (got) co_return *std::move(got);
    co_await sleep_for(delay);
    delay = std::min(2 * delay, clock::duration{std::chrono::milliseconds{32}});
  }
}

}  // namespace weft
