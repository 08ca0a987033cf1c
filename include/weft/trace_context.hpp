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
// A trace is all work that is done for one request. A span is a part of that work, and refers to the span that requested it.
// Nothing here records spans: the library that exports them does, with the ids from here.
//
// `tracestate`, which has data of vendors, is not kept here: a program that passes it on binds its text to a local of its own,
// and drops it where parse() gives nothing.
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
  std::array<std::byte, 16> trace_id{};  ///< of all work for one request; zeros: there is none
  std::array<std::byte, 8> span_id{};    ///< of this part of it, `parent-id` in the standard; zeros: there is none
  bool is_sampled = false;               ///< the caller may have recorded its span, so this one should be recorded
  bool is_random = false;  ///< the lowest seven bytes of trace_id are random, so that samplers may use them

  /// Parses a `traceparent`: the value of one header, without space around it. std::nullopt: it is not valid, and the receiver
  /// begins a trace of its own. Of a version later than 00, it reads the parts that 00 has; unknown flags are ignored.
  static std::optional<trace_context> parse(std::string_view traceparent) noexcept;

  /// Makes the first span of a new trace, with random ids.
  ///
  /// Fails  throws error where the system gives no random bytes, as in a sandbox that forbids getrandom(2).
  /// Cost   one system call. Nothing is kept between calls, so two processes after a fork() never make the same ids.
  static trace_context make(bool is_sampled = true);

  /// Makes a new span of the same trace, with the same flags: for a call to another service, or for a part of the work that is
  /// recorded on its own. If this is no trace, makes a new one with the same `is_sampled`. Fails and costs as make().
  trace_context child() const;

  /// Whether this is a trace: neither id is zero.
  bool is_valid() const noexcept;
  explicit operator bool() const noexcept { return is_valid(); }

  /// Gives a `traceparent` of version 00: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".
  ///
  /// Misuse  if this is no trace, it ends the program with a sentence: the standard forbids zeros.
  std::string to_string() const;

  friend bool operator==(const trace_context&, const trace_context&) = default;
};

/// The trace of the running task; an invalid one where none is bound. `with_local(current_trace, mine, f)` binds one.
extern const local<trace_context> current_trace;

}  // namespace weft
