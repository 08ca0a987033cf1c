// What operations on sockets for datagrams do where they are awaited, or made cases of a select. Part of datagram.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/datagram_buffers.hpp>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/endpoint.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft::detail {

tried try_receive_datagram(descriptor& from, std::span<std::byte> into, net::received& what,
                           net::endpoint* sender) noexcept;
tried try_receive_batch(descriptor& from, std::span<net::incoming> into) noexcept;
/// `where`, if it is null: to the peer. To a Unix one, want of room is refused as EAGAIN, since nothing is reported of it.
tried try_send_datagram(descriptor& to, std::span<const std::byte> data, const net::endpoint* where) noexcept;
/// Gives how many bytes have gone: whole segments, but for the last.
tried try_send_segments(descriptor& to, std::span<const std::byte> data, std::size_t segment,
                        const net::endpoint* where) noexcept;
tried try_send_batch(descriptor& to, std::span<const net::outgoing> those) noexcept;

/// One datagram; of a `received_from`, who has sent it, too.
template <class Received>
struct receiving_one {
  using value_type = Received;
  static constexpr const char* name = "receive a datagram";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() noexcept {
    if constexpr (std::is_same_v<Received, net::received_from>)
      return try_receive_datagram(*at, into, got, &got.from);
    else
      return try_receive_datagram(*at, into, got, nullptr);
  }
  const Received& give(const tried&) const noexcept { return got; }

  descriptor* at;
  std::span<std::byte> into;
  Received got{};
};
using receiving_datagram = receiving_one<net::received>;
using receiving_from = receiving_one<net::received_from>;

struct receiving_batch {
  using value_type = std::size_t;
  static constexpr const char* name = "receive datagrams";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return into.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return into.empty() ? tried{} : try_receive_batch(*at, into); }
  static std::size_t give(const tried& got) noexcept { return got.size; }

  descriptor* at;
  std::span<net::incoming> into;
};

/// What waits until a Unix socket may send to `to`, of which it is not told: neither where that has no room, nor, for sure, where
/// its own buffer is full. After so many tries it waits longer for the next one.
task<> until_room_at(int from, net::endpoint to, unsigned tries);
/// What waits until a Unix socket may send to its peer. It is told when the peer has room, and when three quarters of its own
/// buffer are free; but of neither while other receivers have a quarter of that unread, which other tasks may send meanwhile. So
/// it waits a while only. After so many tries it has another socket to be told by, where its own buffer has room.
task<> until_room_at_peer(descriptor& from, unsigned tries);

// A send has another member: `full()`, the Unix receiver to which it was that has no room; null: it can't be one. To one it
// always tries: the socket's readiness says whether its peer has room.

struct sending_datagram {
  using value_type = void;
  static constexpr const char* name = "send a datagram";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() const noexcept { return try_send_datagram(*at, data, nullptr); }
  static void give(const tried&) noexcept {}
  static const net::endpoint* full() noexcept { return nullptr; }

  descriptor* at;
  std::span<const std::byte> data;
};

struct sending_to {
  using value_type = void;
  static constexpr const char* name = "send a datagram";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return full() != nullptr || at->may_try(which()); }
  tried attempt() const noexcept { return try_send_datagram(*at, data, &to); }
  static void give(const tried&) noexcept {}
  const net::endpoint* full() const noexcept { return to.is_unix() ? &to : nullptr; }

  descriptor* at;
  std::span<const std::byte> data;
  net::endpoint to;
};

struct sending_segments {
  using value_type = std::size_t;
  static constexpr const char* name = "send datagrams";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return data.empty() || full() != nullptr || at->may_try(which()); }
  tried attempt() const noexcept {
    return data.empty() ? tried{} : try_send_segments(*at, data, segment, has_target ? &to : nullptr);
  }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }
  const net::endpoint* full() const noexcept { return has_target && to.is_unix() ? &to : nullptr; }

  descriptor* at;
  std::span<const std::byte> data;
  std::size_t segment;
  net::endpoint to{};
  bool has_target = false;
};

struct sending_batch {
  using value_type = std::size_t;
  static constexpr const char* name = "send datagrams";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return those.empty() || full() != nullptr || at->may_try(which()); }
  tried attempt() const noexcept { return those.empty() ? tried{} : try_send_batch(*at, those); }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }
  const net::endpoint* full() const noexcept {
    return !those.empty() && those.front().to.is_unix() ? &those.front().to : nullptr;
  }

  descriptor* at;
  std::span<const net::outgoing> those;
};

/// To a Unix socket that is not the sender's peer.
template <class Act>
task<typename Act::value_type> send_to_unix(Act act) {
  const descriptor_use use{act.at};  // its number stays while this waits for another one
  for (unsigned tries = 0;; ++tries) {
    auto one = run_operation(act);
    auto how = co_await as_result(std::move(one));
    if (how.is_stopped()) {
      co_await check_stop();
      continue;
    }
    if (how.has_value()) {
      if constexpr (std::is_void_v<typename Act::value_type>)
        co_return;
      else
        co_return *how;
    }
    if (how.error() != std::errc::resource_unavailable_try_again) co_await fail_with(how.exception());
    co_await until_room_at(act.at->number(), *act.full(), tries);
  }
}

/// To the peer of a Unix socket. As run_operation(), but that it tries now and then, whatever was reported.
template <class Act>
task<typename Act::value_type> send_to_unix_peer(Act act) {
  const descriptor_use use{act.at};
  if (!use) co_await fail_with(failure_of(closed_here(), Act::name));
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  for (unsigned tries = 0;; ++tries) {
    if (const tried got = act.attempt(); !got.must_wait) {
      if (got.refused) co_await fail_with(failure_of(got.refused, Act::name));
      co_return act.give(got);
    }
    co_await until_room_at_peer(*act.at, tries);
    if (act.at->is_closed()) co_await fail_with(failure_of(closed_here(), Act::name));
  }
}

/// What a send returns.
template <class Act>
class [[nodiscard("nothing happens until it is awaited")]] sending
    : public task_inside<sending<Act>, typename Act::value_type> {
 public:
  using value_type = typename Act::value_type;
  using may_be_a_case = void;
  sending(Act act) noexcept : act_(std::move(act)) {}

  WEFT_COROUTINE_WRAPPER task<value_type> as_task() && {
    if (act_.full() != nullptr) return send_to_unix<Act>(std::move(act_));
    if (act_.at != nullptr && act_.at->is_unix()) return send_to_unix_peer<Act>(std::move(act_));
    return run_operation<Act>(std::move(act_));
  }
  operation_case<Act> as_case() && { return operation_case<Act>{std::move(act_)}; }

 private:
  Act act_;
};

}  // namespace weft::detail
