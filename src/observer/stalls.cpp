#include "observer/stalls.hpp"

#include <unistd.h>

#include <charconv>
#include <locale>
#include <span>
#include <sstream>
#include <utility>

#include "base/json.hpp"

namespace weft::detail {
namespace {

std::string name_of_frame(const async_frame& one) {
  std::string name = one.function();
  return name.empty() ? one.module() : name;
}

void append_names(std::string& to, std::span<const async_frame> stack) {
  to += '[';
  for (const async_frame& one : stack) {
    if (to.back() != '[') to += ',';
    append_json(to, name_of_frame(one));
  }
  to += ']';
}

std::string as_json(const stall& what) {
  const bool is_task = !what.async_stack.empty();
  const bool is_known = is_task || !what.stack.empty();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string all = "{\"function\":";
  append_json(all, is_task    ? name_of_frame(what.async_stack.front())
                   : is_known ? name_of_frame(what.stack.front())
                              : "");
  all += ",\"doing\":";
  append_json(all, what.system_call < 0 ? "computes" : std::string{"in the system call "} + what.system_call_name);
  char seconds[32];  // with a decimal point, whatever the program's locale is
  const auto end = std::to_chars(seconds, seconds + sizeof seconds, std::chrono::duration<double>{what.lasted}.count(),
                                 std::chars_format::general, 9)
                       .ptr;
  all += ",\"thread\":" + std::to_string(what.thread) + ",\"worker\":" + std::to_string(what.worker) +
         ",\"seconds\":" + std::string{seconds, end} + ",\"waiting\":" + std::to_string(what.waiting) +
         ",\"at_ms\":" + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) +
         ",\"stack\":";
  append_names(all, {what.stack.data(), what.stack.size()});
  all += what.is_exact ? ",\"is_exact\":true" : ",\"is_exact\":false";
  all += ",\"async_stack\":";
  append_names(all, {what.async_stack.data(), what.async_stack.size()});
  return all + '}';
}

}  // namespace

observed_stalls::observed_stalls(std::chrono::milliseconds after, unsigned samples_a_second, int wakes)
    : wakes_{wakes},
      dog_{{.stall_after = after.count() != 0 ? after : std::chrono::hours{24},
            .on_stall = came,
            .with = this,
            .samples_a_second = samples_a_second,
            .deadlocks = false}} {}

void observed_stalls::came(const stall& what, void* with) {
  auto& mine = *static_cast<observed_stalls*>(with);
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << what;
  std::string line = std::move(text).str();
  if (line.back() != '\n') line += '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  std::string json = as_json(what);
  {
    const std::lock_guard held{mine.lock_};
    if (mine.new_.size() == most) mine.new_.erase(mine.new_.begin());
    mine.new_.push_back(json);
    if (mine.last_.size() == most) mine.last_.pop_front();
    mine.last_.push_back(std::move(json));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto woken = ::write(mine.wakes_, &one, sizeof one);
}

std::string observed_stalls::json() const {
  const std::lock_guard held{lock_};
  std::string all = "[";
  for (const std::string& one : last_) {
    if (all.size() != 1) all += ',';
    all += one;
  }
  return all + ']';
}

std::vector<std::string> observed_stalls::take_new() {
  const std::lock_guard held{lock_};
  return std::exchange(new_, {});
}

}  // namespace weft::detail
