// Shadow stacks, which weft can't switch. A header of its own, so that a test can supply the kernel's answers.
#pragma once

namespace weft::detail {

/// The shadow-stack features that the kernel has enabled for this thread, as arch_prctl(ARCH_SHSTK_STATUS) gives them on
/// x86-64, and prctl(PR_GET_SHADOW_STACK_STATUS) elsewhere. False: the kernel does not support shadow stacks.
bool shadow_stack_features(unsigned long& features) noexcept;

/// Ends the program if these features say that a shadow stack is on.
void expect_no_shadow_stack(unsigned long features) noexcept;

/// Ends the program if the kernel says that a shadow stack is on.
void refuse_shadow_stacks() noexcept;

}  // namespace weft::detail
