// What the limits of switches have in common: a context of three registers, a hand-written switch of it that keeps nothing
// else, and stacks whose tops are coloured, all in one mapping. No control words, no exceptions, no guard, no state, no end.
// Written for x86-64. Part of adapters.
#pragma once

#if defined(__x86_64__)

#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <new>
#include <vector>

namespace handwritten {

/// One line: what waits. `with` is what a function that begins here works on.
struct alignas(64) context {
  void* frame_pointer;
  void* resume_at;
  void* stack_pointer;
  void* base;
  void* with;
};

/// All registers but the three, and the base, which the compilers do not let an assembly clobber.
#define BENCH_CLOBBERED_BY_SWITCH                                                                                    \
  "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory", "st", "st(1)", "st(2)", \
      "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",   \
      "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/// To and fro: goes on with what waits in `with`, and waits there.
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
      : "rsi", BENCH_CLOBBERED_BY_SWITCH);
}

/// From one to another: waits in `from`, and goes on with what waits in `to`, which may be the same.
[[gnu::always_inline]] inline void switch_over(context& from, context& to) {
  context* own = &from;
  context* other = &to;
  asm volatile(
      "leaq 1f(%%rip), %%rcx\n\t"
      "movq %%rbp, (%%rsi)\n\t"
      "movq %%rcx, 8(%%rsi)\n\t"
      "movq %%rsp, 16(%%rsi)\n\t"
      "movq %%rbx, 24(%%rsi)\n\t"
      "movq (%%rdi), %%rbp\n\t"
      "movq 8(%%rdi), %%rdx\n\t"
      "movq 16(%%rdi), %%rsp\n\t"
      "movq 24(%%rdi), %%rbx\n\t"
      "jmpq *%%rdx\n"
      "1:\n\t"
      "endbr64"
      : "+S"(own), "+D"(other)
      :
      : BENCH_CLOBBERED_BY_SWITCH);
}

#undef BENCH_CLOBBERED_BY_SWITCH

class coloured_stacks {
 public:
  coloured_stacks(std::size_t count, std::size_t bytes_of_each)
      : distance_{bytes_of_each + std::size_t{3} * 4096}, bytes_{count * distance_} {
    if (count == 0) return;
    void* const all =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc{};
    all_ = static_cast<std::byte*>(all);
  }
  coloured_stacks(const coloured_stacks&) = delete;
  ~coloured_stacks() {
    if (all_ != nullptr) ::munmap(all_, bytes_);
  }

  /// Has `function` begin on the i-th: the first switch to it comes there, with the context still in its register.
  context* begin(std::size_t i, void (*function)(context*), void* with) {
    constexpr std::size_t colours = 23;  // prime to the pages that a cache tells apart
    std::byte* const top = all_ + (i + 1) * distance_ - (i % colours) * 128;
    auto* const one = ::new (top - sizeof(context)) context{};
    one->with = with;
    one->resume_at = reinterpret_cast<void*>(function);
    one->stack_pointer = reinterpret_cast<std::byte*>(one) - 8;  // as after a call
    return one;
  }

 private:
  std::size_t distance_, bytes_;
  std::byte* all_ = nullptr;
};

/// The contexts that can run but for the one that does, in the order of their turns.
class run_queue {
 public:
  explicit run_queue(std::size_t most) : ring_(std::bit_ceil(most + fetched_ahead)), mask_{ring_.size() - 1} {}

  void push(context& last) { ring_[end_++ & mask_] = &last; }

  [[gnu::always_inline]] void yield(context& from) {
    push(from);
    context& to = *ring_[begin_++ & mask_];
    __builtin_prefetch(ring_[(begin_ + fetched_ahead - 1) & mask_], 1);
    switch_over(from, to);
  }

  std::size_t turns = 0;

 private:
  static constexpr std::size_t fetched_ahead = 10;

  std::vector<context*> ring_;
  std::size_t mask_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace handwritten

#endif
