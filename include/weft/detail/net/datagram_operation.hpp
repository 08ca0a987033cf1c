// Operations on datagram sockets, as awaitables and as cases of a select. Part of datagram.hpp.
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
/// A null `where` is the peer. If a Unix receiver at `where` has no room, the send fails with EAGAIN instead of having to wait,
/// since no change is reported when that receiver has room.
tried try_send_datagram(descriptor& to, std::span<const std::byte> data, const net::endpoint* where) noexcept;
/// Gives the number of bytes sent: whole segments, except that the last one may be shorter.
tried try_send_segments(descriptor& to, std::span<const std::byte> data, std::size_t segment,
                        const net::endpoint* where) noexcept;
tried try_send_batch(descriptor& to, std::span<const net::outgoing> those) noexcept;

/// Receives one datagram; with a `received_from` also its sender.
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

/// Waits until it is worth trying again to send from a Unix socket to `to`. The readiness of `from` says nothing of room at `to`,
/// so it waits by another socket, which it connects to `to`. If the buffer of `from` itself is full, it waits for the readiness
/// of `from`; that is not reported in every case, so this wait has a limit, which grows with the number of failed tries.
task<> until_room_at(int from, net::endpoint to, unsigned tries);
/// Waits until it is worth trying again to send from a Unix socket to its peer. A change is reported when the peer has room and
/// three quarters of the sender's buffer are free; but neither is reported while other receivers hold a quarter of that buffer
/// unread, which other tasks may have sent. So it waits for a limited time only. After some failed tries, and if its own buffer
/// has room, it waits by a second socket that is connected to the same peer.
task<> until_room_at_peer(descriptor& from, unsigned tries);

// A send has one member more: full(), the Unix receiver that may have no room; null: the send is to the peer, or not to a Unix
// socket. A send to such a receiver is tried at once, whatever was reported: the socket's readiness is about its peer alone.

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

/// A send to a Unix socket that is not the sender's peer.
template <class Act>
task<typename Act::value_type> send_to_unix(Act act) {
  const descriptor_use use{act.at};  // so the number is not closed during until_room_at()
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

/// A send to the peer of a Unix socket. As run_operation(), but it also tries again after some time without a report.
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
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") sending
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
