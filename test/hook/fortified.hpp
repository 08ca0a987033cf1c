// What a program calls that was compiled with -D_FORTIFY_SOURCE, where a compiler can't see that a read fits: the C library's
// headers declare them for themselves only.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <csignal>
#include <cstddef>

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
ssize_t __read_chk(int number, void* into, std::size_t size, std::size_t room);
ssize_t __pread_chk(int number, void* into, std::size_t size, off_t at, std::size_t room);
ssize_t __pread64_chk(int number, void* into, std::size_t size, off64_t at, std::size_t room);
ssize_t __recv_chk(int number, void* into, std::size_t size, std::size_t room, int flags);
ssize_t __recvfrom_chk(int number, void* into, std::size_t size, std::size_t room, int flags, sockaddr* from,
                       socklen_t* from_size);
int __poll_chk(pollfd* those, nfds_t count, int limit, std::size_t room);
int __ppoll_chk(pollfd* those, nfds_t count, const timespec* limit, const sigset_t* mask, std::size_t room);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}
