#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>

void bench::run(bench::state& state) {
  measure_frames<concurrencpp::lazy_result>(state, [](auto task) { return std::move(task).run().get(); });
}
