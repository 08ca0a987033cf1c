// The pipes to and from a process.
#include <weft/process.hpp>

#include <unistd.h>

#include <cerrno>
#include <weft/error.hpp>
#include <weft/runtime.hpp>

#include "net/failed_try.hpp"

namespace weft {
namespace detail {

tried try_read_pipe(descriptor& from, std::span<std::byte> into) noexcept {
  from.expect_change(direction::in);
  ssize_t size;
  do size = ::read(from.number(), into.data(), into.size());
  while (size < 0 && errno == EINTR);
  if (size < 0) return failed(from, direction::in, errno);
  if (static_cast<std::size_t>(size) == into.size()) from.has_more(direction::in);
  return {.size = static_cast<std::size_t>(size)};
}

tried try_write_pipe(descriptor& to, std::span<const std::byte> data) noexcept {
  return try_write(to, [&] {
    int refused = 0;
    ssize_t size;
    {
      const as_worker guarded;  // blocks SIGPIPE: write() has no flag for that, as send() has MSG_NOSIGNAL
      size = ::write(to.number(), data.data(), data.size());
      refused = errno;
    }
    errno = refused;
    return size;
  });
}

}  // namespace detail

task<> process_writer::write_all(detail::descriptor* const* of, std::span<const std::byte> data) {
  detail::descriptor* const at = *of;
  constexpr auto out = detail::direction::out;
  const detail::descriptor_use use{at, out, detail::writing_input::if_taken};
  if (!use) co_await fail_with(detail::failure_of(detail::closed_here(), detail::writing_input::name));
  co_await check_stop();
  if (detail::has_had_its_turn()) co_await yield();
  while (!data.empty()) {
    if (at->may_try(out))
      if (const detail::tried sent = detail::try_write_pipe(*at, data); !sent.must_wait) {
        if (sent.refused) co_await fail_with(detail::failure_of(sent.refused, detail::writing_input::name));
        data = data.subspan(sent.size);
        continue;
      }
    co_await at->until_ready(out);
    if (at->is_closed()) co_await fail_with(detail::failure_of(detail::closed_here(), detail::writing_input::name));
  }
}

}  // namespace weft
