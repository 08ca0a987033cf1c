// A session: OpenSSL's, between two buffers in memory, under a lock.
//
// What goes out. Only one task sends at a time (`is_sending_`): the one that does the handshake, that writes, or that ends the
// stream. What it has OpenSSL encrypt is gathered in `out_`, and swapped into `sending_` to be sent outside of the lock. A read may
// have OpenSSL answer something, as a change of keys. It does not wait to send that, or one that is stopped meanwhile would have cut
// a record: it sends what goes at once, where nobody sends, and the rest goes first with whatever is sent next. Who asks for more
// and more answers and reads none (`flooded`) ends the session.
//
// What comes in. One task at a time fills `in_`, outside of the lock and only while it is empty; OpenSSL takes from it under the lock,
// and finds nothing meanwhile (`is_filling_`). A read that waits for more has taken nothing. Mostly who reads fills. But while a
// message about the session has come in part, as a ticket, OpenSSL writes nothing before it has the rest, so who writes may have
// to, too. Whoever finds that another one fills waits for the end of that, and then tries anew before he fills (`fills_`): the
// other one may have had OpenSSL take what he waited for, and what comes next may not come before he has written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <weft/detail/io/byte_buffer.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/event.hpp>
#include <weft/tls.hpp>

#include "tls/context.hpp"
#include "tls/openssl.hpp"

namespace weft::detail {

class tls_session {
 public:
  tls_session(std::shared_ptr<tls_context> by, std::unique_ptr<tls_transport> over, const std::string& host);
  tls_session(const tls_session&) = delete;
  ~tls_session();

  tls_transport& transport() noexcept { return *over_; }

  static constexpr std::size_t record = std::size_t{16} * 1024;  // the most that one record has of what is written

  // What a step that must wait does next. `try_again`: there is something that no step behind `tried_at` fills has seen. `fill`: it
  // fills, and calls has_filled(). `wait`: another one does; has_been_filled.wait(), and tries again.
  enum class turn : std::uint8_t { try_again, fill, wait };
  turn next_turn(std::uint64_t tried_at) noexcept;
  tls_input& input() noexcept { return in_; }                 // by who fills it
  void has_filled(std::optional<std::size_t> size) noexcept;  // nothing: stopped, or failed
  auto_event has_been_filled;                                 // for the one that waits: there are two directions
  const std::string& host() const noexcept { return asked_.host; }

  // Each is one step, which takes the lock. `must_wait`: for more input than there was behind as many fills as `tried_at` is set to.
  tried handshake(std::uint64_t& tried_at);
  tried read(std::span<std::byte> into, std::uint64_t& tried_at);
  // Takes as much as a piece has room for. Throws std::bad_alloc, and has taken nothing then.
  tried encrypt(std::span<const std::byte> data, std::size_t most, std::uint64_t& tried_at);
  tried end(std::uint64_t& tried_at);  // close_notify

  // What is to be sent now, by who did a step; empty: nothing.
  std::span<const std::byte> to_send() const noexcept { return sending_.held(); }
  // Whether more is to be sent then.
  bool has_sent() noexcept;
  void has_not_sent(bool was_stopped) noexcept;

  void close() noexcept;
  bool is_open() const noexcept;

  std::optional<tls::certificate_info> peer_certificate();
  std::string fact(tls_fact which);
  bool is_resumed() noexcept;

  bool is_read = false, is_written = false;  // by somebody

 private:
  using guard = std::lock_guard<std::mutex>;
  static constexpr std::size_t most_answers = std::size_t{16} * 1024, kept_room = std::size_t{4} * 1024;

  static const BIO_METHOD* in_memory();
  static int give(BIO* self, char* into, std::size_t size, std::size_t* given) noexcept;
  static int take(BIO* self, const char* from, std::size_t size, std::size_t* taken) noexcept;
  static long control(BIO* self, int what, long number, void* pointer) noexcept;

  // Under the lock, all of them.
  void begin_to_send() noexcept;
  std::error_code refusal() const noexcept;
  std::error_code error_of(int result) noexcept;
  void send_at_once() noexcept;
  tried waits(std::uint64_t& tried_at) const noexcept;

  const std::shared_ptr<tls_context> by_;
  const std::unique_ptr<tls_transport> over_;
  const tls_asked asked_;

  mutable std::mutex lock_;
  tls_input in_;
  bool is_filling_ = false;
  bool is_fill_awaited_ = false;  // by the other direction
  std::uint64_t fills_ = 0;
  byte_buffer out_{kept_room};
  byte_buffer sending_{kept_room};  // without the lock, by who sends
  bool is_sending_ = false;
  bool is_closed_ = false;        // both directions
  bool is_ended_ = false;         // close_notify was sent, or can't be: no more is written
  bool has_lost_ = false;         // something was not sent, so close_notify would say what is not so
  bool input_has_ended_ = false;  // of the transport
  bool lacks_memory_ = false;     // of what OpenSSL has written
  std::error_code failure_;       // behind which nothing goes
  owned_ssl openssl_;
};

}  // namespace weft::detail
