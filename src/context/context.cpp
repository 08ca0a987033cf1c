#include <weft/detail/context/context.hpp>

#include <atomic>
#include <utility>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <sys/prctl.h>
#endif

#include "base/cxxabi.hpp"
#include "base/debug_note.hpp"
#include "context/shadow_stack.hpp"

// The parts of context.hpp that are not inline: the outermost function of each stack, calls on another stack, and the checks
// for shadow stacks.
//
// weft_context_start is the outermost function of each stack. It calls the function that prepare_context() left at the top of
// the stack. That function's second argument, which the first switch passes, is in the right register already. The CFI finds
// the resumer's registers in the context, by the frame pointer: DW_CFA_def_cfa_expression (0x0f) for the stack pointer,
// DW_CFA_expression (0x10) for the other registers.
//
// weft_call_on_top is an ordinary function, except that its call runs on another stack. On x86-64 it leaves alone the 128
// bytes below `top`, the red zone, which a leaf function may use. It skips them in a step of its own, with a memory access
// before that step, so that memcheck sees a switch of stacks and then a frame that grows. In one step, memcheck would take
// the frame for unwritable.
#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.hidden weft_context_start
.globl weft_context_start
.type weft_context_start, @function
weft_context_start:
  .cfi_startproc
  .cfi_escape 0x0f, 3, 0x76, 16, 0x06
  .cfi_escape 0x10, 6, 2, 0x76, 0
  .cfi_escape 0x10, 16, 2, 0x76, 8
  .cfi_escape 0x10, 3, 2, 0x76, 24
  .cfi_undefined 12
  .cfi_undefined 13
  .cfi_undefined 14
  .cfi_undefined 15
  endbr64
  movq %rbx, %rdi
  callq *(%rsp)
  ud2
  .cfi_endproc
.hidden weft_context_start_end
.globl weft_context_start_end
weft_context_start_end:
.size weft_context_start, . - weft_context_start

.p2align 4
.hidden weft_call_on_top
.globl weft_call_on_top
.type weft_call_on_top, @function
weft_call_on_top:
  .cfi_startproc
  endbr64
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register 6
  movq %rdx, %rsp
  movq (%rbp), %rax
  subq $128, %rsp
  callq *%rsi
  leave
  .cfi_def_cfa 7, 8
  retq
  .cfi_endproc
.size weft_call_on_top, . - weft_call_on_top
)");
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.hidden weft_context_start
.globl weft_context_start
.type weft_context_start, %function
weft_context_start:
  .cfi_startproc
  .cfi_escape 0x0f, 3, 0x8d, 16, 0x06
  .cfi_escape 0x10, 29, 2, 0x8d, 0
  .cfi_escape 0x10, 30, 2, 0x8d, 8
  .cfi_escape 0x10, 19, 2, 0x8d, 24
  hint #36
  ldr x2, [sp]
  mov x0, x19
  blr x2
  brk #1
  .cfi_endproc
.hidden weft_context_start_end
.globl weft_context_start_end
weft_context_start_end:
.size weft_context_start, . - weft_context_start

.p2align 4
.hidden weft_call_on_top
.globl weft_call_on_top
.type weft_call_on_top, %function
weft_call_on_top:
  .cfi_startproc
  hint #34
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset 29, -16
  .cfi_offset 30, -8
  mov x29, sp
  .cfi_def_cfa_register 29
  mov sp, x2
  blr x1
  mov sp, x29
  ldp x29, x30, [sp], #16
  .cfi_def_cfa 31, 0
  .cfi_restore 29
  .cfi_restore 30
  ret
  .cfi_endproc
.size weft_call_on_top, . - weft_call_on_top
)");
#else  // riscv64, whose frame pointer stands above the record
asm(R"(
.text
.p2align 4
.hidden weft_context_start
.globl weft_context_start
.type weft_context_start, @function
weft_context_start:
  .cfi_startproc
  .cfi_escape 0x0f, 3, 0x78, 0, 0x06
  .cfi_escape 0x10, 8, 2, 0x78, 0x70
  .cfi_escape 0x10, 1, 2, 0x78, 0x78
  .cfi_escape 0x10, 9, 2, 0x78, 8
  ld a2, 0(sp)
  mv a0, s1
  jalr a2
  ebreak
  .cfi_endproc
.hidden weft_context_start_end
.globl weft_context_start_end
weft_context_start_end:
.size weft_context_start, . - weft_context_start

.p2align 4
.hidden weft_call_on_top
.globl weft_call_on_top
.type weft_call_on_top, @function
weft_call_on_top:
  .cfi_startproc
  addi sp, sp, -16
  .cfi_def_cfa_offset 16
  sd s0, 0(sp)
  sd ra, 8(sp)
  .cfi_offset 8, -16
  .cfi_offset 1, -8
  addi s0, sp, 16
  .cfi_def_cfa 8, 0
  mv sp, a2
  jalr a1
  addi sp, s0, -16
  ld ra, 8(sp)
  ld s0, 0(sp)
  .cfi_def_cfa 2, 16
  addi sp, sp, 16
  .cfi_def_cfa_offset 0
  .cfi_restore 8
  .cfi_restore 1
  ret
  .cfi_endproc
.size weft_call_on_top, . - weft_call_on_top
)");
#endif

extern "C" {
void weft_context_start();
extern const char weft_context_start_end;
void weft_call_on_top(void* argument, void (*call)(void*), void* top);
}

namespace weft::detail {

#if defined(__x86_64__)
// Contexts that are prepared before this is initialized copy false, which is slower on AMD, but right.
bool loads_mxcsr = [] {
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
}();
#endif

namespace {

std::byte* aligned_to_16(std::byte* top) noexcept {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15});
}

// The rounding mode and control words of the calling thread.
control_words read_words() noexcept {
#if defined(__x86_64__)
  control_words now{};
  asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(now.rounding), "=m"(now.x87));
  return now;
#else
  std::uint64_t rounding;
#if defined(__aarch64__)
  asm volatile("mrs %0, fpcr" : "=r"(rounding));
#else
  asm volatile("frrm %0" : "=r"(rounding));
#endif
  return {.rounding = static_cast<std::uint32_t>(rounding), .x87 = 0};
#endif
}

void load_words(const control_words& words) noexcept {
#if defined(__x86_64__)
  asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(words.rounding), "m"(words.x87) : "memory");
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{words.rounding}) : "memory");
#else
  asm volatile("fsrm %0" : : "r"(std::uint64_t{words.rounding}) : "memory");
#endif
}

}  // namespace

void prepare_context(context& fresh, std::byte* top, void (*start)(void*, void*), void* argument) noexcept {
  fresh = {};
  std::byte* const stack = aligned_to_16(top) - 16;
  *reinterpret_cast<void (**)(void*, void*)>(stack) = start;
#if defined(__riscv)
  fresh.frame_pointer = reinterpret_cast<std::byte*>(&fresh) + 16;
#else
  fresh.frame_pointer = &fresh;
#endif
  fresh.resume_at = reinterpret_cast<void*>(weft_context_start);
  fresh.stack_pointer = stack;
  fresh.base = argument;
  const control_words words = read_words();  // a new stack begins with those of the thread
  fresh.rounding = words.rounding;
  fresh.x87 = words.x87;
#if defined(__x86_64__)
  fresh.loads_mxcsr = loads_mxcsr;
#endif
}

void call_on_top_of(std::byte* top, void (*call)(void*), void* argument) {
  weft_call_on_top(argument, call, aligned_to_16(top));
}

code_range outermost_code() noexcept {
  return {reinterpret_cast<const char*>(weft_context_start), &weft_context_start_end};
}

// For debuggers, which unwind a stack from outside of the process.
static const debug_field outermost_fields[] = {
    {"context.outermost", reinterpret_cast<const void*>(weft_context_start)},
    {"context.outermost_end", &weft_context_start_end},
};
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_context{outermost_fields};
WEFT_DEBUG_NOTE("weft_debug_context");

// ---- shadow stacks --------------------------------------------------------------------------------------------------

#define WEFT_SHADOW_STACKS "stacks can't be switched while the kernel checks returns against a shadow stack: "

void expect_no_shadow_stack(unsigned long features) noexcept {
  constexpr unsigned long enabled = 1;  // ARCH_SHSTK_SHSTK, PR_SHADOW_STACK_ENABLE
#if defined(__x86_64__)
  WEFT_EXPECTS((features & enabled) == 0, WEFT_SHADOW_STACKS
               "start the program with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off, or link it with -z noshstk");
#elif defined(__aarch64__)
  WEFT_EXPECTS((features & enabled) == 0, WEFT_SHADOW_STACKS
               "start the program with GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=0, or build it with no gcs in its "
               "-mbranch-protection");
#else
  WEFT_EXPECTS((features & enabled) == 0,
               WEFT_SHADOW_STACKS "build the program without -fcf-protection=return, or full");
#endif
}

bool shadow_stack_features(unsigned long& features) noexcept {
#if defined(__x86_64__)
  constexpr int status = 0x5005;  // ARCH_SHSTK_STATUS, Linux 6.6
  return ::syscall(SYS_arch_prctl, status, &features) == 0;
#else
  constexpr int status = 74;  // PR_GET_SHADOW_STACK_STATUS: AArch64 since Linux 6.13; riscv64 later
  return ::prctl(status, &features, 0UL, 0UL, 0UL) == 0;
#endif
}

void refuse_shadow_stacks() noexcept {
  if (unsigned long features = 0; shadow_stack_features(features)) expect_no_shadow_stack(features);
}

// ---- exceptions -----------------------------------------------------------------------------------------------------

// Before its first switch, the first thread sets this to its offset; a thread whose offset differs sets it to 0, for good.
constinit std::atomic<std::ptrdiff_t> exception_globals_offset{0};

// Written before a thread's first switch, always to the same value.
constinit std::atomic<std::ptrdiff_t> readiness_offset{0};

exception_globals& exception_globals_of_thread() noexcept {
  return *reinterpret_cast<exception_globals*>(abi::__cxa_get_globals());
}

side_state set_aside(const context& left) noexcept {
  const side_state own{std::exchange(exceptions_here(), {nullptr, 0}), read_words()};
  load_words({left.rounding, left.x87});
  return own;
}

void take_up(const side_state& own) noexcept {
  load_words(own.words);
  exceptions_here() = own.exceptions;
}

}  // namespace weft::detail
