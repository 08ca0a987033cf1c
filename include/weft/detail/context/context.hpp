// The switch between stacks. A `context` holds the registers with which a suspended stack continues: frame pointer, program
// counter, stack pointer, and little else. exchange() loads them and stores the caller's in their place, so one context
// serves both sides: while a coroutine is suspended it holds the coroutine's registers, while the coroutine runs it holds
// those of its resumer.
//
// The switch is inline assembly that saves three registers and declares all others clobbered, so the compiler spills only
// those that are live there. It calls no function: a switch inside a function returns to the other side's caller, which the
// processor mispredicts each time (a pair of switches takes 10 ns with the function of Boost.Context, 4 with this). Two more
// things are saved. One is the register that LLVM reserves in a function with both a realigned frame and a variable array,
// which a clobber would not save. The other is the floating-point control words, which are loaded where they differ, or
// where a load is cheap.
//
// The first three words have the layout that unwinders expect behind a frame pointer, and the outermost function of a stack
// has the context's address as its frame pointer. So debuggers, profilers and unwinders walk on from a coroutine's stack to
// its resumer's: by frame pointers, and by the CFI of context_start.
//
// Indirect jumps land on endbr64 (bti j on AArch64), so that branch tracking may be on. Shadow stacks can't be switched
// from user space at this price: where the kernel has them on, refuse_shadow_stacks() ends the program with a sentence.
//
// Rejected: (a) a function that saves what the ABI asks for: see above. (b) ucontext: a system call a switch, for the
// signal mask. (c) Two contexts, one a side: twice the lines, and each switch writes one and reads the other.
//
// Long because a switch and the calls around it are one protocol, written once for each of three processors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <weft/detail/base/config.hpp>

#if WEFT_ASAN
extern "C" void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* size);
#endif
#if WEFT_TSAN
extern "C" void* __tsan_get_current_fiber();
extern "C" void __tsan_switch_to_fiber(void* fiber, unsigned flags);
#endif

namespace weft::detail {

/// The registers with which a suspended stack continues. The assembly below relies on these offsets.
struct context {
  void* frame_pointer;     //  0
  void* resume_at;         //  8
  void* stack_pointer;     // 16
  void* base;              // 24: rbx, x19 or s1
  std::uint32_t rounding;  // 32: mxcsr, fpcr or fcsr
  std::uint32_t scratch;   // 36
  std::uint16_t x87;       // 40: its control word
  std::uint16_t x87_scratch;
  std::uint16_t mark;  // 44: not the switch's, but on the same line
  bool loads_mxcsr;    // 46: at each switch, not only where it differs; see loads_mxcsr

  /// What sanitizers want to know of the side that does not run.
  struct notes {
    const void* bottom;
    std::size_t size;
    void* fiber;
  };
};
static_assert(sizeof(context) == 48);

/// The floating-point control words of one side of a switch: its rounding mode, and the like.
struct control_words {
  std::uint32_t rounding;
  std::uint16_t x87;
};

/// Makes `fresh` go on in `start(argument, passed)` on the stack that ends at `top`; `passed` is what the first switch to it
/// passes. `start` never returns.
void prepare_context(context& fresh, std::byte* top, void (*start)(void*, void*), void* argument) noexcept;

#if defined(__x86_64__)
/// Whether contexts that are prepared from now on load mxcsr at each switch. Else it is loaded where its control bits
/// differ, which takes a read of what was just stored. Loading is half a nanosecond on AMD, where that read is three times as
/// dear; on Intel it is 170 ns where the status bits differ. Set when the program starts; tests try both.
extern bool loads_mxcsr;
#endif

/// Calls `call(argument)` on the stack that ends at `top`, and leaves alone what a leaf function keeps below its stack
/// pointer. Exceptions pass.
void call_on_top_of(std::byte* top, void (*call)(void*), void* argument);

/// Where context_start begins and ends: what is outermost on each stack.
struct code_range {
  const char *begin, *end;
};
code_range outermost_code() noexcept;

// ---- the switch -----------------------------------------------------------------------------------------------------

#if defined(__x86_64__)

#if defined(__AVX512F__)
#define WEFT_CLOBBERS_MORE                                                                                      \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
      "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define WEFT_CLOBBERS_MORE
#endif

#define WEFT_JUMP_CLOBBERS "rcx", "r8", "r9", "r10", WEFT_CLOBBERS
#define WEFT_CLOBBERS                                                                                            \
  "r11", "r12", "r13", "r14", "r15", "cc", "memory", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", \
      "st(7)", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
      "xmm12", "xmm13", "xmm14", "xmm15" WEFT_CLOBBERS_MORE

// r11 says where the caller goes on; rax, rdx, r10, r8, ecx (at 36, too) and r9 where and how the other side does.
[[gnu::always_inline]] inline void* jump(context& with, void* passed) noexcept {
  context* at = &with;
  asm volatile(
      "movl 32(%%rdi), %%ecx\n\t"
      "movzwl 40(%%rdi), %%r9d\n\t"
      "stmxcsr 32(%%rdi)\n\t"
      "fnstcw 40(%%rdi)\n\t"
      "movl %%ecx, 36(%%rdi)\n\t"
      "leaq 1f(%%rip), %%r11\n\t"
      "movq (%%rdi), %%rax\n\t"
      "movq 8(%%rdi), %%rdx\n\t"
      "movq 16(%%rdi), %%r10\n\t"
      "movq 24(%%rdi), %%r8\n\t"
      "movq %%rbp, (%%rdi)\n\t"
      "movq %%r11, 8(%%rdi)\n\t"
      "movq %%rsp, 16(%%rdi)\n\t"
      "movq %%rbx, 24(%%rdi)\n\t"
      "cmpb $0, 46(%%rdi)\n\t"
      "jne 3f\n\t"
      "xorl 32(%%rdi), %%ecx\n\t"
      "testl $0xffc0, %%ecx\n\t" /* the rest of mxcsr is status, the thread's */
      "jz 4f\n"
      "3:\n\t"
      "ldmxcsr 36(%%rdi)\n"
      "4:\n\t"
      "cmpw %%r9w, 40(%%rdi)\n\t"
      "jne 5f\n"
      "2:\n\t"
      "movq %%rax, %%rbp\n\t"
      "movq %%r10, %%rsp\n\t"
      "movq %%r8, %%rbx\n\t"
      "jmpq *%%rdx\n"
      "5:\n\t"
      "movw %%r9w, 42(%%rdi)\n\t"
      "fldcw 42(%%rdi)\n\t"
      "jmp 2b\n"
      "1:\n\t"
      "endbr64"
      : "+D"(at), "+S"(passed)
      :
      : "rax", "rdx", WEFT_JUMP_CLOBBERS);
  return passed;
}

/// Switches from one coroutine directly to another, of which neither has resumed the other: stores the caller's registers in
/// `from`, loads those of `to`, and moves the resumer's registers, which `from` held, into `to`. Returns what the switch
/// that comes back here passes.
[[gnu::always_inline]] inline void* jump_across(context& from, context& to, void* passed) noexcept {
  context *at = &from, *with = &to;
  asm volatile(
      "movl 32(%%rdi), %%ecx\n\t"
      "movzwl 40(%%rdi), %%r9d\n\t"
      "stmxcsr 32(%%rdi)\n\t"
      "fnstcw 40(%%rdi)\n\t"
      "movaps (%%rdi), %%xmm0\n\t"
      "movaps 16(%%rdi), %%xmm1\n\t"
      "leaq 1f(%%rip), %%r11\n\t"
      "movq %%rbp, (%%rdi)\n\t"
      "movq %%r11, 8(%%rdi)\n\t"
      "movq %%rsp, 16(%%rdi)\n\t"
      "movq %%rbx, 24(%%rdi)\n\t"
      "cmpb $0, 46(%%rdi)\n\t"
      "je 3f\n"
      "2:\n\t"
      "ldmxcsr 32(%%rdx)\n"
      "4:\n\t"
      "movzwl 40(%%rdx), %%eax\n\t"
      "cmpw %%ax, 40(%%rdi)\n\t"
      "jne 5f\n"
      "6:\n\t"
      "movl %%ecx, 32(%%rdx)\n\t"
      "movw %%r9w, 40(%%rdx)\n\t"
      "movq (%%rdx), %%rax\n\t"
      "movq 8(%%rdx), %%rcx\n\t"
      "movq 16(%%rdx), %%r10\n\t"
      "movq 24(%%rdx), %%r8\n\t"
      "movaps %%xmm0, (%%rdx)\n\t"
      "movaps %%xmm1, 16(%%rdx)\n\t"
      "movq %%rax, %%rbp\n\t"
      "movq %%r10, %%rsp\n\t"
      "movq %%r8, %%rbx\n\t"
      "jmpq *%%rcx\n"
      "3:\n\t"
      "movl 32(%%rdx), %%eax\n\t"
      "xorl 32(%%rdi), %%eax\n\t"
      "testl $0xffc0, %%eax\n\t" /* as above */
      "jz 4b\n\t"
      "jmp 2b\n"
      "5:\n\t"
      "fldcw 40(%%rdx)\n\t"
      "jmp 6b\n"
      "1:\n\t"
      "endbr64"
      : "+D"(at), "+S"(passed), "+d"(with)
      :
      : "rax", WEFT_JUMP_CLOBBERS);
  return passed;
}
#undef WEFT_CLOBBERS
#undef WEFT_JUMP_CLOBBERS

/// The thread's own address, read anew each time: a compiler keeps what __builtin_thread_pointer() gives over a switch.
[[gnu::always_inline]] inline char* thread_pointer() noexcept {
  char* self;
  asm volatile("movq %%fs:0, %0" : "=r"(self));
  return self;
}

#elif defined(__aarch64__)

#if defined(__ARM_FEATURE_SVE)
#define WEFT_CLOBBERS_MORE \
  , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"
#else
#define WEFT_CLOBBERS_MORE
#endif

[[gnu::always_inline]] inline void* jump(context& with, void* value) noexcept {
  register context* at asm("x0") = &with;
  register void* passed asm("x1") = value;
  asm volatile(
      "mrs x7, fpcr\n\t"
      "ldr w8, [x0, #32]\n\t"
      "adr x9, 1f\n\t"
      "ldp x2, x3, [x0]\n\t"
      "ldp x4, x5, [x0, #16]\n\t"
      "mov x6, sp\n\t"
      "stp x29, x9, [x0]\n\t"
      "stp x6, x19, [x0, #16]\n\t"
      "cmp w7, w8\n\t"
      "b.eq 2f\n\t"
      "str w7, [x0, #32]\n\t"
      "msr fpcr, x8\n"
      "2:\n\t"
      "mov x29, x2\n\t"
      "mov sp, x4\n\t"
      "mov x19, x5\n\t"
      "br x3\n"
      "1:\n\t"
      "hint #36"  // bti j
      : "+r"(at), "+r"(passed)
      :
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18",
        "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "cc", "memory", "v0", "v1", "v2", "v3",
        "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
        "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31" WEFT_CLOBBERS_MORE);
  return passed;
}

/// The thread's own address, read anew each time: a compiler keeps what __builtin_thread_pointer() gives over a switch.
[[gnu::always_inline]] inline char* thread_pointer() noexcept {
  char* self;
  asm volatile("mrs %0, tpidr_el0" : "=r"(self));
  return self;
}

#elif defined(__riscv) && __riscv_xlen == 64 && defined(__riscv_flen) && __riscv_flen == 64

#if defined(__riscv_vector)
#define WEFT_CLOBBERS_MORE                                                                                           \
  , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",     \
      "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "vl", \
      "vtype"
#else
#define WEFT_CLOBBERS_MORE
#endif

[[gnu::always_inline]] inline void* jump(context& with, void* value) noexcept {
  register context* at asm("a0") = &with;
  register void* passed asm("a1") = value;
  asm volatile(
      "frrm a6\n\t"
      "lw a7, 32(a0)\n\t"
      "lla t0, 1f\n\t"
      "ld a2, 0(a0)\n\t"
      "ld a3, 8(a0)\n\t"
      "ld a4, 16(a0)\n\t"
      "ld a5, 24(a0)\n\t"
      "sd s0, 0(a0)\n\t"
      "sd t0, 8(a0)\n\t"
      "sd sp, 16(a0)\n\t"
      "sd s1, 24(a0)\n\t"
      "beq a6, a7, 2f\n\t"
      "sw a6, 32(a0)\n\t"
      "fsrm a7\n"
      "2:\n\t"
      "mv s0, a2\n\t"
      "mv sp, a4\n\t"
      "mv s1, a5\n\t"
      "jr a3\n"
      "1:"
      : "+r"(at), "+r"(passed)
      :
      : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a2", "a3", "a4", "a5", "a6", "a7", "s2", "s3", "s4", "s5",
        "s6", "s7", "s8", "s9", "s10", "s11", "memory", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8",
        "ft9", "ft10", "ft11", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs0", "fs1", "fs2", "fs3",
        "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11" WEFT_CLOBBERS_MORE);
  return passed;
}

/// The thread's own address.
[[gnu::always_inline]] inline char* thread_pointer() noexcept {
  char* self;
  asm volatile("mv %0, tp" : "=r"(self));
  return self;
}

#else
#error "weft switches stacks on x86-64, AArch64 and riscv64 (with doubles in registers); this is none of them"
#endif
#undef WEFT_CLOBBERS_MORE

#if !defined(__x86_64__)
void* jump_across(context& from, context& to, void* passed) noexcept;  // there is none; see jumps_across
#endif

/// Whether sides go on by jump_across(). The address sanitizer is not told of it.
#if defined(__x86_64__) && !WEFT_ASAN
inline constexpr bool jumps_across = true;
#else
inline constexpr bool jumps_across = false;
#endif

// ---- exceptions -----------------------------------------------------------------------------------------------------

/// The C++ ABI's exception state of a thread: the exceptions that are being handled, and how many are propagating.
struct exception_globals {
  void* caught;
  unsigned uncaught;
};

/// Distance from the thread pointer to a thread's exception_globals; 0: not the same in all threads. Set before the first
/// switch. Relaxed: a thread reads what it has written itself before, or a 0 that another thread wrote, and finds its own
/// exceptions with either.
extern std::atomic<std::ptrdiff_t> exception_globals_offset;

/// The calling thread's exception_globals, as the C++ library gives them.
exception_globals& exception_globals_of_thread() noexcept;

[[gnu::always_inline]] inline exception_globals& exceptions_here() noexcept {
  const std::ptrdiff_t offset = exception_globals_offset.load(std::memory_order_relaxed);
  if (offset != 0) [[likely]]
    return *reinterpret_cast<exception_globals*>(thread_pointer() + offset);
  return exception_globals_of_thread();
}

/// The state of the thread that belongs to one side of a switch, and is exchanged in it.
struct side_state {
  exception_globals exceptions;
  control_words words;
};

/// Called on a coroutine's stack before code runs there that is no part of the coroutine. Loads the control words of the
/// coroutine's resumer, which `left` holds, and takes the coroutine's exceptions out of the thread. take_up() puts the
/// returned state back, on the same thread, and drops the state that the thread has by then.
side_state set_aside(const context& left) noexcept;
void take_up(const side_state& own) noexcept;

// ---- threads --------------------------------------------------------------------------------------------------------

/// Distance from the thread pointer to the flag that says whether a thread is ready for switches, the same in all threads;
/// 0: no thread is ready. Relaxed: a constant once it is set, and a thread that reads 0 takes itself for not ready.
extern std::atomic<std::ptrdiff_t> readiness_offset;

[[gnu::always_inline]] inline bool thread_is_ready() noexcept {
  const std::ptrdiff_t offset = readiness_offset.load(std::memory_order_relaxed);  // a constant, once it is there
  return offset != 0 && *reinterpret_cast<const bool*>(thread_pointer() + offset);
}

// ---- with all that belongs to it ------------------------------------------------------------------------------------

[[gnu::always_inline]] inline void* jump_noted(context& with, void* passed, [[maybe_unused]] context::notes& notes,
                                               [[maybe_unused]] bool for_good = false) noexcept {
#if WEFT_ASAN
  void* frames = nullptr;
  __sanitizer_start_switch_fiber(for_good ? nullptr : &frames, notes.bottom, notes.size);
#endif
#if WEFT_TSAN
  void* const to = notes.fiber;
  notes.fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to, 0);
#endif
  passed = jump(with, passed);
#if WEFT_ASAN
  __sanitizer_finish_switch_fiber(frames, &notes.bottom, &notes.size);
#endif
  return passed;
}

/// Called by the first function that runs on a new stack.
inline void arrived_first([[maybe_unused]] context::notes& notes) noexcept {
#if WEFT_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &notes.bottom, &notes.size);
#endif
}

/// Switches to the stack whose registers `with` holds, and stores the caller's there. On each side it returns what the other
/// side has passed. Exceptions that the caller is handling, or that propagate through it, stay its own: the other side does
/// not see them.
[[gnu::always_inline]] inline void* exchange(context& with, void* passed, context::notes& notes) noexcept {
  exception_globals& mine = exceptions_here();
  if (mine.caught != nullptr || mine.uncaught != 0) [[unlikely]] {
    const exception_globals kept = mine;
    mine = {nullptr, 0};
    passed = jump_noted(with, passed, notes);
    exceptions_here() = kept;  // perhaps another thread's
    return passed;
  }
  return jump_noted(with, passed, notes);
}

}  // namespace weft::detail
