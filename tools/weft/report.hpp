// What was seen, as JSON, as a graph and as text. The JSON is that of weft::snapshot::json().
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "target.hpp"
#include "tasks.hpp"

namespace weft_tool {

/// As weft::snapshot::text() has it, where no deadlock says more.
inline constexpr std::string_view hint_of_stuck =
    "STUCK: every task waits for what only another task would do, and no timer, I/O or call is pending";

/// What a reader knows a task by: its outermost function that is not weft's own.
std::string name_of(const task_seen& one, const target& in);

void write_json(std::ostream& out, const tasks_seen& all, const target& in);
void write_dot(std::ostream& out, const tasks_seen& all, const target& in);
void write_text(std::ostream& out, const tasks_seen& all, const target& in);

/// The stack of a task, one line a function.
void write_stack(std::ostream& out, const task_seen& one, const target& in, const std::string& indent);

std::string hex(address at);
/// The steady clock's nanoseconds.
std::int64_t steady_now() noexcept;
/// Since when it waits or runs, its deadline and which line has set it, and why it was told to stop: ", for 20 ms, told to stop (too slow,
/// server.cpp:12)".
std::string described_state(const task_seen& one, std::int64_t now);
/// With names: "mutex 0x55d0 held by transfer (0x7f10)".
std::string describe(const task_wait& what, const tasks_seen& all, const target& in);

}  // namespace weft_tool
