// Apart, so that a test can say what the kernel would.
#pragma once

namespace weft::detail {

/// Ends the program if `features`, as arch_prctl(ARCH_SHSTK_STATUS) gives them, have a shadow stack.
void expect_no_shadow_stack(unsigned long features) noexcept;

/// The same with what the kernel says.
void refuse_shadow_stacks() noexcept;

}  // namespace weft::detail
