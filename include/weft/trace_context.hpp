// Context that travels with a request, from one process to the next: W3C trace context, as a local that all work inherits.
//
//     w::task<> handle(request r) {
//       const auto caller = w::trace_context::parse(r.header("traceparent"));
//       const w::trace_context mine = caller ? caller->child() : w::trace_context::make();
//       co_await w::with_local(w::current_trace, mine, answer, std::move(r));
//     }
//
//     w::task<> ask_other_service(call c) {  // anywhere below answer(), in whatever fork, on whatever thread
//       c.set_header("traceparent", w::current_trace->child().to_string());
//       co_await c.send();
//     }
//
// A trace is all that is done for one request; a span is a part of that, and knows the span that asked for it. Nothing here
// records spans: that is for the library that exports them, which gets its numbers from here.
//
// `tracestate`, what vendors add, is not kept here: who passes it on binds its text to a local of its own, and drops it where
// parse() gives nothing.
//
// Source: W3C Trace Context, level 1 (recommendation of 2021-11-23), with the flag of random ids from level 2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <weft/env.hpp>

namespace weft {

/// Which span of which trace this is: the content of a `traceparent`.
struct trace_context {
  std::array<std::byte, 16> trace_id{};  ///< of all that is done for one request; zeros: there is none
  std::array<std::byte, 8> span_id{};    ///< of this part of it, `parent-id` in the standard; zeros: there is none
  bool is_sampled = false;               ///< whoever called may have recorded it, and so should this
  bool is_random = false;  ///< the lowest seven bytes of trace_id are random, so that samplers may use them

  /// Reads a `traceparent`, the value of one header without space around it. Nothing: it is not valid, and the receiver begins
  /// a trace of its own. Of a version later than 00 it reads what 00 has; flags that are not known here are ignored.
  static std::optional<trace_context> parse(std::string_view traceparent) noexcept;

  /// The first span of a new trace, of random numbers.
  ///
  /// Fails  throws error where the system gives no random bytes, as in a sandbox that forbids getrandom(2).
  /// Cost   one system call. Nothing is kept between calls, so two processes after a fork() never make the same numbers.
  static trace_context make(bool is_sampled = true);

  /// A new span of the same trace, with the same flags: for a call to another service, or a part of the work that is recorded
  /// by itself. Of no trace: as make(), with the same flag is_sampled. Otherwise as make().
  trace_context child() const;

  /// Whether there is a trace: neither number is zero.
  bool is_valid() const noexcept;
  explicit operator bool() const noexcept { return is_valid(); }

  /// As a `traceparent` of version 00: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".
  ///
  /// Misuse  where there is no trace it ends the program with a sentence: nobody may send zeros.
  std::string to_string() const;

  friend bool operator==(const trace_context&, const trace_context&) = default;
};

/// The trace of the running task; not valid where none is bound. `with_local(current_trace, mine, f)` binds one.
extern const local<trace_context> current_trace;

}  // namespace weft
