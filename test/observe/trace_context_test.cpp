// What a traceparent is, and what it is not; new traces and spans; and how one is inherited.
#include <weft/error.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>
#include <weft/trace_context.hpp>
#include <weft/with.hpp>

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "support/weft_test.hpp"

namespace {

// What getrandom() does next, instead of itself: fails with these numbers, then gives zeros so many times.
std::vector<int> failures;
int zeros = 0;

}  // namespace

extern "C" ssize_t __real_getrandom(void* into, std::size_t size, unsigned flags);
extern "C" ssize_t __wrap_getrandom(void* into, std::size_t size, unsigned flags) {
  if (!failures.empty()) {
    errno = failures.front();
    failures.erase(failures.begin());
    return -1;
  }
  if (zeros != 0) {
    --zeros;
    std::memset(into, 0, size);
    return static_cast<ssize_t>(size);
  }
  return __real_getrandom(into, size, flags);
}

namespace {

using weft::current_trace;
using weft::scope;
using weft::sync_wait;
using weft::task;
using weft::trace_context;
using weft::with_local;
using weft::with_scope;

constexpr std::string_view example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

trace_context read(std::string_view text) {
  const std::optional<trace_context> got = trace_context::parse(text);
  EXPECT_TRUE(got.has_value()) << text;
  return got.value_or(trace_context{});
}

std::string changed(std::size_t at, std::string_view to) {
  std::string text{example};
  return text.replace(at, to.size(), to);
}

// ---- reading --------------------------------------------------------------------------------------------------------------

TEST(trace_context, reads_the_example_of_the_standard) {
  const trace_context it = read(example);
  EXPECT_TRUE(it.is_valid());
  EXPECT_TRUE(it.is_sampled);
  EXPECT_FALSE(it.is_random);
  EXPECT_EQ(it.trace_id[0], std::byte{0x4b});
  EXPECT_EQ(it.trace_id[15], std::byte{0x36});
  EXPECT_EQ(it.span_id[0], std::byte{0x00});
  EXPECT_EQ(it.span_id[7], std::byte{0xb7});
  EXPECT_EQ(it.to_string(), example);
}

TEST(trace_context, reads_each_flag_by_itself_and_ignores_others) {
  EXPECT_FALSE(read(changed(53, "00")).is_sampled);
  EXPECT_FALSE(read(changed(53, "00")).is_random);
  EXPECT_TRUE(read(changed(53, "02")).is_random);
  EXPECT_FALSE(read(changed(53, "02")).is_sampled);
  const trace_context all = read(changed(53, "ff"));
  EXPECT_TRUE(all.is_sampled && all.is_random);
  EXPECT_EQ(all.to_string().substr(53), "03");  // what is not known is not sent on
  EXPECT_FALSE(read(changed(53, "fc")).is_sampled);
}

TEST(trace_context, refuses_what_the_standard_calls_invalid) {
  const std::string text{example};
  for (const std::string& bad : {
           std::string{},
           std::string{"00"},
           text.substr(1),                                                          // too short
           text.substr(0, 54),                                                      // one digit of the flags
           text.substr(0, 52),                                                      // no flags
           text + '-',                                                              // version 00 ends behind the flags
           text + "-00",                                                            //
           text + "1",                                                              //
           text + ' ',                                                              // space is not its own to remove
           ' ' + text,                                                              //
           changed(0, "ff"),                                                        // the version that is forbidden
           changed(0, "ff") + "-more",                                              //
           changed(0, "0G"),                                                        // no digit
           changed(0, "0A"),                                                        // capitals
           changed(0, " 0"),                                                        //
           changed(2, "_"),                                                         // no hyphens
           changed(35, "_"),                                                        //
           changed(52, "_"),                                                        //
           changed(3, "00000000000000000000000000000000"),                          // no trace
           changed(36, "0000000000000000"),                                         // no span
           changed(3, "4BF92F3577B34DA6A3CE929D0E0E4736"),                          // capitals
           changed(36, "00F067AA0BA902B7"),                                         //
           changed(53, "0A"),                                                       //
           changed(3, "g"),                                                         // no digits
           changed(34, "-"),                                                        //
           changed(36, "."),                                                        //
           changed(51, "x"),                                                        //
           changed(53, "."),                                                        //
           changed(54, "/"),                                                        // just below and above the digits
           changed(54, ":"),                                                        //
           changed(54, "`"),                                                        //
           changed(54, "g"),                                                        //
           std::string{"00-4bf92f3577b34da6a3ce929d0e0e47-00f067aa0ba902b7-0100"},  // parts of other lengths
           std::string{"00-4bf92f3577b34da6a3ce929d0e0e473600-f067aa0ba902b7-01"},  //
           text.substr(0, 54) + '\0',
           std::string(55, '-'),
           std::string(4096, '0'),
       })
    EXPECT_FALSE(trace_context::parse(bad).has_value()) << bad;
}

TEST(trace_context, reads_of_later_versions_what_it_knows) {
  for (const std::string& later : {changed(0, "01"), changed(0, "cc"), changed(0, "fe"), changed(0, "cc") + "-",
                                   changed(0, "cc") + "-what-the-future-will-be-like"})
    EXPECT_EQ(read(later), read(example)) << later;
  EXPECT_EQ(read(changed(0, "cc") + "-x").to_string(), example);  // sends the version that it knows
  for (const std::string& bad : {changed(0, "01") + ".what", changed(0, "cc") + "0", changed(0, "01").substr(0, 54)})
    EXPECT_FALSE(trace_context::parse(bad).has_value()) << bad;
}

// Whatever one byte becomes: it is refused, or means that byte alone.
TEST(trace_context, reads_what_it_has_written_whatever_one_byte_becomes) {
  for (std::size_t at = 0; at != example.size(); ++at)
    for (int byte = 0; byte != 256; ++byte) {
      std::string text{example};
      text[at] = static_cast<char>(byte);
      const std::optional<trace_context> got = trace_context::parse(text);
      if (!got) continue;
      EXPECT_TRUE(got->is_valid());
      EXPECT_EQ(read(got->to_string()), *got);
      if (at >= 3 && at < 53) {
        EXPECT_EQ(got->to_string(), text);
      }
    }
}

TEST(trace_context_death, zeros_are_not_sent) {
  EXPECT_DEATH(static_cast<void>(trace_context{}.to_string()), "there is no trace");
}

// ---- new ones -------------------------------------------------------------------------------------------------------------

TEST(trace_context, makes_traces_and_spans_that_differ) {
  std::set<std::string> traces, spans;
  for (int i = 0; i != 200; ++i) {
    const trace_context one = trace_context::make();
    EXPECT_TRUE(one.is_valid() && one.is_sampled && one.is_random);
    EXPECT_EQ(read(one.to_string()), one);
    traces.insert(one.to_string().substr(3, 32));
    spans.insert(one.to_string().substr(36, 16));
  }
  EXPECT_EQ(traces.size(), 200U);
  EXPECT_EQ(spans.size(), 200U);
  EXPECT_FALSE(trace_context::make(false).is_sampled);
}

TEST(trace_context, has_children_of_its_own_trace) {
  for (const char* const flags : {"00", "01", "02", "03"}) {
    const trace_context mine = read(changed(53, flags));
    const trace_context child = mine.child(), other = mine.child();
    EXPECT_EQ(child.trace_id, mine.trace_id);
    EXPECT_NE(child.span_id, mine.span_id);
    EXPECT_NE(child.span_id, other.span_id);
    EXPECT_EQ(child.to_string().substr(53), flags);  // a random trace stays one; no other becomes one
  }
  const trace_context of_none = trace_context{}.child();
  EXPECT_TRUE(of_none.is_valid() && of_none.is_random);
  EXPECT_FALSE(of_none.is_sampled);
}

TEST(trace_context, never_makes_zeros) {
  zeros = 3;
  EXPECT_TRUE(trace_context::make().is_valid());
  EXPECT_EQ(zeros, 0);
  zeros = 2;
  EXPECT_TRUE(read(example).child().is_valid());
  EXPECT_EQ(zeros, 0);
}

TEST(trace_context, goes_on_behind_a_signal_and_says_what_the_system_refuses) {
  failures = {EINTR, EINTR};
  EXPECT_TRUE(trace_context::make().is_valid());
  for (const int refused : {EPERM, ENOSYS, EIO}) {
    failures = {EINTR, refused};
    try {
      static_cast<void>(read(example).child());
      ADD_FAILURE() << "it was refused";
    } catch (const weft::error& failed) {
      EXPECT_EQ(failed.code(), (std::error_code{refused, std::generic_category()}));
      EXPECT_NE(std::string_view{failed.what()}.find("random"), std::string_view::npos);
    }
  }
  EXPECT_TRUE(failures.empty());
}

// ---- inherited ------------------------------------------------------------------------------------------------------------

task<trace_context> trace_here() { co_return *current_trace; }

task<> look_everywhere(trace_context mine) {
  EXPECT_EQ(*current_trace, mine);
  const auto body = [&](scope& s) -> task<> {
    auto forked = s.fork(trace_here());
    auto in_fiber = s.go([] { return *current_trace; });
    EXPECT_EQ(co_await std::move(forked), mine);
    EXPECT_EQ(co_await std::move(in_fiber), mine);
  };
  co_await with_scope(body);
  const trace_context child = mine.child();
  EXPECT_EQ(co_await with_local(current_trace, child, trace_here), child);
  EXPECT_EQ(*current_trace, mine);
}

TEST(trace_context, is_inherited_by_all_work_below) {
  EXPECT_FALSE(current_trace->is_valid());
  weft::pool workers{{.threads = 2}};
  const auto outside = []() -> task<> {
    EXPECT_FALSE(current_trace.is_bound());
    const trace_context mine = trace_context::make();
    co_await with_local(current_trace, mine, look_everywhere, mine);
    EXPECT_FALSE(current_trace->is_valid());
  };
  workers.run(outside());
}

TEST(trace_context, is_of_one_request_each_where_many_are_served) {
  weft::pool workers{{.threads = 2}};
  const auto request = []() -> task<> {
    const trace_context mine = trace_context::make();
    const auto keeps = [](trace_context is) -> task<> {
      for (int i = 0; i != 50; ++i) {
        EXPECT_EQ(*current_trace, is);
        co_await weft::yield();
      }
    };
    co_await with_local(current_trace, mine, keeps, mine);
  };
  const auto serve = [&](scope& s) -> task<> {
    for (int i = 0; i != 20; ++i) s.fork(request());
    co_return;
  };
  workers.run(with_scope(serve));
}

}  // namespace
