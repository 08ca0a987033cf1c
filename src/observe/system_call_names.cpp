// The names of system calls that a thread may be in for long, by their numbers, which differ from machine to machine.
#include <sys/syscall.h>

#include "observe/thread_probe.hpp"

namespace weft::detail {

const char* name_of_call(long number) noexcept {
  struct call {
    long number;
    const char* name;
  };
  static constexpr call calls[]{
      {SYS_read, "read"},
      {SYS_write, "write"},
      {SYS_readv, "readv"},
      {SYS_writev, "writev"},
      {SYS_pread64, "pread64"},
      {SYS_pwrite64, "pwrite64"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_futex, "futex"},
      {SYS_ppoll, "ppoll"},
      {SYS_pselect6, "pselect6"},
      {SYS_epoll_pwait, "epoll_pwait"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_sendto, "sendto"},
      {SYS_sendmsg, "sendmsg"},
      {SYS_accept, "accept"},
      {SYS_accept4, "accept4"},
      {SYS_connect, "connect"},
      {SYS_openat, "openat"},
      {SYS_fsync, "fsync"},
      {SYS_fdatasync, "fdatasync"},
      {SYS_flock, "flock"},
      {SYS_fcntl, "fcntl"},
      {SYS_wait4, "wait4"},
      {SYS_waitid, "waitid"},
      {SYS_close, "close"},
      {SYS_mmap, "mmap"},
      {SYS_munmap, "munmap"},
      {SYS_madvise, "madvise"},
      {SYS_ioctl, "ioctl"},
      {SYS_getdents64, "getdents64"},
      {SYS_sendfile, "sendfile"},
      {SYS_splice, "splice"},
      {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
      {SYS_io_uring_enter, "io_uring_enter"},
      {SYS_sched_yield, "sched_yield"},
#if defined(SYS_poll)
      {SYS_poll, "poll"},
      {SYS_select, "select"},
      {SYS_epoll_wait, "epoll_wait"},
      {SYS_open, "open"},
      {SYS_pause, "pause"},
      {SYS_stat, "stat"},
#endif
  };
  for (const call& one : calls)
    if (one.number == number) return one.name;
  return "";
}

}  // namespace weft::detail
