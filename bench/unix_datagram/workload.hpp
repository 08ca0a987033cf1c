// unix_datagram: udp over a pair of Unix sockets, which are connected: a client sends so many datagrams of 64 bytes at a time,
// gets all of them back, and sends the next. One item is a datagram and its answer, and its time the server's processor time
// for it. --size is how many are sent at a time.
//
// A server has the one end, descriptor 3, and sends each datagram back, one by one.
#pragma once

#include "../udp/workload.hpp"
