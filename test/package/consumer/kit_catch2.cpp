// The test kit under Catch2, which throws what fails.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#include <chrono>
#include <weft/task.hpp>
#include <weft/test.hpp>

namespace w = weft;
using namespace std::chrono_literals;

w::task<int> nap() {
  co_await w::sleep_for(1h);
  co_return 7;
}

TEST_CASE("a run takes no time") { REQUIRE(w::test::run(nap) == 7); }

TEST_CASE("what REQUIRE throws passes through a sweep") {
  const auto report = w::test::cancellation_sweep("nap", []() -> w::task<> {
    const int got = co_await nap();  // not inside of REQUIRE, which takes a stop there for a failure
    REQUIRE(got == 7);
  });
  REQUIRE(report.awaits == 1);
}

TEST_CASE("a failure of the kit is reported", "[!shouldfail]") {
  w::test::run([]() -> w::task<> {
    co_await w::sleep_for(1ms);
    w::test::require(false, "as planned");
  });
}

TEST_CASE("a failed REQUIRE in a sweep is reported", "[!shouldfail]") {
  w::test::cancellation_sweep("nap", []() -> w::task<> {
    const int got = co_await nap();
    REQUIRE(got == 8);
  });
}

TEST_CASE("allocations are swept") { REQUIRE(w::test::allocation_sweep("nap", nap) >= 1); }
