#include "awaiter.hpp"
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>

void bench::run(bench::state& state) {
  constexpr auto await_increment = [](std::uint64_t value) { return increment{value}; };
  state.measure(callback_awaits, callback_awaits,
                [&] { return count_by_callback<concurrencpp::lazy_result>(await_increment).run().get(); });
}
