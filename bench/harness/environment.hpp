// What a figure depends on besides the code: the machine, as far as Linux tells.
#pragma once

#include <nlohmann/json.hpp>

namespace bench {

/// CPU, MHz, caches, governor, huge pages, cgroup limits, kernel, …: one string or number a key; what the system does
/// not say is absent.
nlohmann::ordered_json describe_machine();

/// CPU time since boot, in ticks: all of it, and what the hypervisor took away ("steal").
struct cpu_ticks {
  double all = 0;
  double stolen = 0;
};
cpu_ticks read_cpu_ticks();

/// The core to pin single-threaded programs to: the last one allowed, since the first serves most interrupts.
int quiet_core();

}  // namespace bench
