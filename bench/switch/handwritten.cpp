// The limit: a switch that saves frame pointer, stack pointer and address and nothing else, between stacks whose tops are
// coloured, all in one mapping, with the next line fetched ahead. No control words, no exceptions, no guard, no state, no
// end: what weft's switch has besides is the difference. Written for x86-64.
#include "workload.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#if defined(__x86_64__)

namespace {

struct alignas(64) context {
  void* frame_pointer;
  void* resume_at;
  void* stack_pointer;
  void* base;
  std::size_t* turns;
};

[[gnu::always_inline]] inline void exchange(context& with) {
  context* at = &with;
  asm volatile(
      "leaq 1f(%%rip), %%rcx\n\t"
      "movq (%%rdi), %%rax\n\t"
      "movq 8(%%rdi), %%rdx\n\t"
      "movq 16(%%rdi), %%r10\n\t"
      "movq 24(%%rdi), %%r8\n\t"
      "movq %%rbp, (%%rdi)\n\t"
      "movq %%rcx, 8(%%rdi)\n\t"
      "movq %%rsp, 16(%%rdi)\n\t"
      "movq %%rbx, 24(%%rdi)\n\t"
      "movq %%rax, %%rbp\n\t"
      "movq %%r10, %%rsp\n\t"
      "movq %%r8, %%rbx\n\t"
      "jmpq *%%rdx\n"
      "1:\n\t"
      "endbr64"
      : "+D"(at)
      :
      : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory", "st", "st(1)",
        "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

// The first switch to a stack comes here, with the context still in its register.
[[noreturn]] void counts(context* mine) {
  for (;; exchange(*mine)) ++*mine->turns;
}

}  // namespace

void bench::run(bench::state& state) {
  constexpr std::size_t colours = 24, distance = switch_stack + 3 * 4096;
  std::size_t turns = 0;
  const std::size_t bytes = state.size() * distance;
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc{};
  const auto unmap = [bytes](void* all) { ::munmap(all, bytes); };
  const std::unique_ptr<void, decltype(unmap)> stacks{mapped, unmap};

  std::vector<context*> all;
  for (std::size_t i = 0; i != state.size(); ++i) {
    std::byte* const top = static_cast<std::byte*>(mapped) + (i + 1) * distance - (i % colours) * 128;
    auto* const one = ::new (top - sizeof(context)) context{};
    one->turns = &turns;
    one->resume_at = reinterpret_cast<void*>(counts);
    one->stack_pointer = reinterpret_cast<std::byte*>(one) - 8;  // as after a call
    all.push_back(one);
  }
  const std::size_t last = all.size() - 1;
  measure_switches(state, turns, [&] {
    for (std::size_t i = 0; i <= last; ++i) {
      __builtin_prefetch(all[i + 10 <= last ? i + 10 : last], 1);
      exchange(*all[i]);
    }
  });
}

#else

void bench::run(bench::state&) { throw std::runtime_error{"written for x86-64"}; }

#endif
