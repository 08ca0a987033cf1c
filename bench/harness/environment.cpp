#include "environment.hpp"

#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace bench {
namespace {

using json = nlohmann::ordered_json;

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in{file};
  std::string line;
  std::getline(in, line);
  return line;
}

/// The value of "key : value" or key="value", of the first line that has it.
std::string field(const std::filesystem::path& file, std::string_view key) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const auto from = line.find_first_not_of("\t :=\"", key.size());
    const auto to = line.find_last_not_of("\" \n");
    return from == std::string::npos ? "" : line.substr(from, to - from + 1);
  }
  return {};
}

void put(json& out, const char* key, std::string value) {
  if (!value.empty()) out[key] = std::move(value);
}

/// "L1d 48K, L1i 32K, L2 2048K, L3 107520K", as the first core sees them.
std::string caches() {
  std::string all;
  for (int i = 0;; ++i) {
    const auto index = std::filesystem::path{"/sys/devices/system/cpu/cpu0/cache"} / ("index" + std::to_string(i));
    if (!std::filesystem::exists(index)) return all;
    const auto type = first_line(index / "type");
    all += (all.empty() ? "L" : ", L") + first_line(index / "level");
    all += type == "Data" ? "d " : type == "Instruction" ? "i " : " ";
    all += first_line(index / "size");
  }
}

/// The choice among "always [madvise] never".
std::string chosen(const std::string& line) {
  const auto from = line.find('['), to = line.find(']');
  return from == std::string::npos || to == std::string::npos ? line : line.substr(from + 1, to - from - 1);
}

/// A limit of this process's control group, version 2: in its own folder, or at the root inside a container.
std::string cgroup_limit(const char* name) {
  const auto line = first_line("/proc/self/cgroup");
  const auto own = line.starts_with("0::") ? line.substr(3) : "/";
  for (const auto& folder : {"/sys/fs/cgroup" + own, std::string{"/sys/fs/cgroup"}})
    if (const auto limit = first_line(std::filesystem::path{folder} / name); !limit.empty()) return limit;
  return {};
}

}  // namespace

json describe_machine() {
  json out;
  put(out, "cpu", field("/proc/cpuinfo", "model name"));
  put(out, "mhz", field("/proc/cpuinfo", "cpu MHz"));
  out["cores"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  put(out, "caches", caches());
  put(out, "governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  out["virtual"] = field("/proc/cpuinfo", "flags").find(" hypervisor ") != std::string::npos;
  put(out, "memory", field("/proc/meminfo", "MemTotal"));
  put(out, "huge pages", chosen(first_line("/sys/kernel/mm/transparent_hugepage/enabled")));
  put(out, "cgroup cpu.max", cgroup_limit("cpu.max"));
  put(out, "cgroup memory.max", cgroup_limit("memory.max"));
  utsname kernel{};
  if (::uname(&kernel) == 0) out["kernel"] = std::string{kernel.sysname} + " " + kernel.release + " " + kernel.machine;
  put(out, "libc", std::string{"glibc "} + ::gnu_get_libc_version());
  put(out, "system", field("/etc/os-release", "PRETTY_NAME"));
  put(out, "load", first_line("/proc/loadavg"));
  return out;
}

cpu_ticks read_cpu_ticks() {
  std::istringstream line{first_line("/proc/stat")};
  std::string name;
  line >> name;
  cpu_ticks ticks;
  double value = 0;
  for (int i = 0; i != 8 && line >> value; ++i) {  // user nice system idle iowait irq softirq steal
    ticks.all += value;
    if (i == 7) ticks.stolen = value;
  }
  return ticks;
}

int quiet_core() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  for (int core = CPU_SETSIZE - 1; core > 0; --core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) return core;
  return 0;
}

}  // namespace bench
