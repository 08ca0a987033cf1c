#include <weft/recording.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/error.hpp>

#include "observe/recording_format.hpp"

namespace weft {
namespace detail {
namespace {

constexpr const char* reads_recording = "read a recording";

[[noreturn]] void refuse(const char* why) {
  throw error{std::make_error_code(std::errc::illegal_byte_sequence), reads_recording, why};
}

/// What is left of a file; no more is read than there is.
class bytes_left {
 public:
  explicit bytes_left(std::span<const std::byte> all) noexcept : all_{all} {}

  bool empty() const noexcept { return all_.empty(); }
  std::size_t size() const noexcept { return all_.size(); }
  template <class T>
  T take() {
    T one;
    const auto from = take(sizeof one);
    std::memcpy(static_cast<void*>(&one), from.data(), sizeof one);
    return one;
  }
  std::span<const std::byte> take(std::size_t size) {
    if (size > all_.size()) refuse("it ends within a section");
    const auto first = all_.first(size);
    all_ = all_.subspan(size);
    return first;
  }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(all_.data()), all_.size()}; }

 private:
  std::span<const std::byte> all_;
};

/// A line of /proc/self/maps that names a file.
struct mapping {
  std::uint64_t begin = 0, end = 0, offset = 0;
  std::string file;
};

// "begin-end perms offset device inode    path", all but the path without blanks, numbers in hexadecimal.
bool read_mapping(std::string_view line, mapping& into) {
  const auto number = [&line](std::uint64_t& value, char behind) {
    value = 0;
    std::size_t digits = 0;
    for (; digits != line.size() && digits != 16; ++digits) {
      const char one = line[digits];
      const int digit = one >= '0' && one <= '9' ? one - '0' : one >= 'a' && one <= 'f' ? one - 'a' + 10 : -1;
      if (digit < 0) break;
      value = value << 4 | static_cast<std::uint64_t>(digit);
    }
    if (digits == 0 || digits == line.size() || line[digits] != behind) return false;
    line.remove_prefix(digits + 1);
    return true;
  };
  const auto skip_word = [&line] {
    const std::size_t end = line.find(' ');
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  };
  if (!number(into.begin, '-') || !number(into.end, ' ')) return false;
  skip_word();
  if (!number(into.offset, ' ')) return false;
  skip_word();
  skip_word();
  const std::size_t path = line.find_first_not_of(' ');
  if (path == std::string_view::npos) return false;
  into.file = line.substr(path);
  return true;
}

}  // namespace
}  // namespace detail

struct recording::contents {
  detail::file_header head;
  std::vector<event> events;
  std::map<std::uint64_t, std::string> texts, names;
  std::map<std::uint32_t, std::string> threads;
  std::vector<detail::mapping> maps;
  bool is_whole = false;
};

recording::recording(std::unique_ptr<contents> all) noexcept : all_{std::move(all)} {}
recording::recording(recording&&) noexcept = default;
recording& recording::operator=(recording&&) noexcept = default;
recording::~recording() = default;

std::span<const recording::event> recording::events() const noexcept { return all_->events; }
bool recording::is_whole() const noexcept { return all_->is_whole; }
recording::reason recording::why() const noexcept { return static_cast<reason>(all_->head.why); }
int recording::signal() const noexcept { return static_cast<int>(all_->head.signal); }
std::uint64_t recording::process() const noexcept { return all_->head.process; }

std::string_view recording::text(std::uint64_t address) const noexcept {
  const auto found = all_->texts.find(address);
  return found != all_->texts.end() ? std::string_view{found->second} : std::string_view{};
}

std::string_view recording::thread_name(std::uint32_t thread) const noexcept {
  const auto found = all_->threads.find(thread);
  return found != all_->threads.end() ? std::string_view{found->second} : std::string_view{};
}

std::string recording::function(std::uint64_t address) const {
  if (const auto found = all_->names.find(address); found != all_->names.end()) return found->second;
  for (const detail::mapping& one : all_->maps)
    if (one.begin <= address && address < one.end)
      return one.file + '+' + detail::hexadecimal(address - one.begin + one.offset);
  return detail::hexadecimal(address);
}

recording recording::read(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) throw error{{errno, std::generic_category()}, detail::reads_recording, path};
  std::vector<std::byte> all;
  for (std::size_t used = 0;;) {
    all.resize(used + (std::size_t{1} << 16));
    const ssize_t got = ::read(file, all.data() + used, all.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int refused = errno;
      ::close(file);
      throw error{{refused, std::generic_category()}, detail::reads_recording, path};
    }
    used += static_cast<std::size_t>(got);
    if (got == 0) {
      all.resize(used);
      break;
    }
  }
  ::close(file);
  return parse(all);
}

recording recording::parse(std::span<const std::byte> file) {
  auto all = std::make_unique<contents>();
  detail::bytes_left left{file};
  if (left.size() < sizeof(detail::file_header)) detail::refuse("it is shorter than a header");
  detail::file_header& head = all->head;
  head = left.take<detail::file_header>();
  const detail::file_header ours;
  if (std::memcmp(head.magic, ours.magic, sizeof ours.magic) != 0) detail::refuse("it does not begin as one");
  if (head.version != ours.version || head.bytes != ours.bytes || head.event_bytes != ours.event_bytes)
    detail::refuse("it is of another version");
  if (head.why > static_cast<std::uint32_t>(reason::deadlock)) detail::refuse("it does not say why it was written");

  const std::uint64_t ticks = head.written.stamp - head.began.stamp;
  const double scale = ticks != 0 && head.written.stamp > head.began.stamp
                           ? static_cast<double>(head.written.steady - head.began.steady) / static_cast<double>(ticks)
                           : 1.0;
  const auto nanoseconds = [&](std::uint64_t stamp) {
    const auto since = static_cast<double>(static_cast<std::int64_t>(stamp - head.began.stamp)) * scale;
    constexpr double most = 4e18;  // so that a difference has room
    return std::isfinite(since) ? static_cast<std::int64_t>(std::clamp(since, -most, most)) : std::int64_t{0};
  };

  std::string maps;
  while (!left.empty() && !all->is_whole) {
    // A crash may end the process while it writes: then the last section is not whole, and what was before it counts.
    if (left.size() < sizeof(detail::section_header)) break;
    const auto next = left.take<detail::section_header>();
    if (next.size > left.size()) break;
    detail::bytes_left in{left.take(static_cast<std::size_t>(next.size))};
    switch (static_cast<detail::section>(next.kind)) {
      case detail::section::events: {
        const auto part = in.take<detail::ring_part>();
        if (in.size() % sizeof(recorded_event) != 0) detail::refuse("a section has a part of an event");
        for (std::uint64_t i = 0; !in.empty(); ++i) {
          event one;
          static_cast<recorded_event&>(one) = in.take<recorded_event>();
          one.thread = part.thread;
          one.ring = part.ring;
          one.in_ring = part.first + i;
          one.nanoseconds = nanoseconds(one.when);
          all->events.push_back(one);
        }
        break;
      }
      case detail::section::text: {
        const auto address = in.take<std::uint64_t>();
        all->texts[address] = in.text();
        break;
      }
      case detail::section::name: {
        const auto address = in.take<std::uint64_t>();
        all->names[address] = in.text();
        break;
      }
      case detail::section::thread: {
        const auto number = in.take<std::uint64_t>();
        all->threads[static_cast<std::uint32_t>(number)] = in.text();
        break;
      }
      case detail::section::maps: maps += in.text(); break;
      case detail::section::end: all->is_whole = true; break;
      default: break;  // of a later minor change
    }
  }
  for (std::string_view rest = maps; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (detail::mapping one; detail::read_mapping(line, one)) all->maps.push_back(std::move(one));
  }
  // By ticks, since nanoseconds that are rounded may be equal.
  std::ranges::sort(all->events, {}, [began = head.began.stamp](const event& one) {
    return std::tuple{static_cast<std::int64_t>(one.when - began), one.ring, one.in_ring};
  });
  return recording{std::move(all)};
}

}  // namespace weft
