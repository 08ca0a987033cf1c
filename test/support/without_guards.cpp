// without_guards advised|any PROGRAM ARGUMENT...: runs a program to which the system gives no guards by MADV_GUARD_INSTALL,
// as before Linux 6.13, or none at all, whatever it asks for. The filter that says so is the kernel's, and stays with all
// that the program starts.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t machine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t machine = AUDIT_ARCH_RISCV64;
#endif

constexpr std::uint32_t madv_guard_install = 102;  // Linux 6.13; glibc 2.36 doesn't know it

constexpr sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
// The lower half of an argument: all three processors have that first.
constexpr sock_filter load_argument(std::size_t index) {
  return load(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));
}
constexpr sock_filter unless_equal_skip(std::uint32_t value, std::uint8_t skipped) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
}
constexpr sock_filter give(std::uint32_t verdict) { return BPF_STMT(BPF_RET | BPF_K, verdict); }

// Of one call: where that argument is so, it fails; else it is done.
#define FAIL_WHERE(call, index, value, error)                                                                       \
  unless_equal_skip(call, 4), load_argument(index), unless_equal_skip(value, 1), give(SECCOMP_RET_ERRNO | (error)), \
      give(SECCOMP_RET_ALLOW)

bool filter(bool any) {
  const std::uint32_t never = ~std::uint32_t{0};  // no access that mprotect knows
  std::array rules{
      load(offsetof(seccomp_data, arch)),
      unless_equal_skip(machine, 16),  // to the last rule
      load(offsetof(seccomp_data, nr)),
      FAIL_WHERE(SYS_madvise, 2, madv_guard_install, EINVAL),
      FAIL_WHERE(SYS_process_madvise, 3, madv_guard_install, EINVAL),
      FAIL_WHERE(SYS_mprotect, 2, any ? std::uint32_t{PROT_NONE} : never, EPERM),
      give(SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view kind = count < 3 ? "" : arguments[1];
  if ((kind != "advised" && kind != "any") || !filter(kind == "any")) {
    std::puts("SKIPPED: guards can't be switched off here");
    return 77;
  }
  ::execv(arguments[2], arguments + 2);
  std::perror(arguments[2]);
  return 1;
}
