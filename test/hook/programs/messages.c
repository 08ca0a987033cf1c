#include "programs.h"

enum { many = 400000, few = 1000 };

/* Two messages of a stream, of which the first is more than there is room for: a child takes them in their order. */
static void two_messages_of_a_stream(FILE* out) {
  int ends[2];
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  const pid_t child = fork_with(ends[1], ends[1]);
  if (child == 0) {
    char room[4096];
    long as = 0, bs = 0, other = 0;
    ssize_t got;
    usleep(500);
    while ((got = read(ends[1], room, sizeof room)) > 0)
      for (ssize_t i = 0; i != got; ++i) {
        if (room[i] == 'a' && bs == 0)
          ++as;
        else if (room[i] == 'b')
          ++bs;
        else
          ++other;
      }
    _exit(as == many && bs == few && other == 0 ? 0 : 1);
  }
  close(ends[1]);
  char* const text = malloc(many + few);
  memset(text, 'a', many);
  memset(text + many, 'b', few);
  struct iovec first[2] = {{text, 10}, {text + 10, many - 10}}, second = {text + many, few};
  struct mmsghdr both[2] = {{.msg_hdr = {.msg_iov = first, .msg_iovlen = 2}},
                            {.msg_hdr = {.msg_iov = &second, .msg_iovlen = 1}}};
  const int sent = sendmmsg(ends[0], both, 2, 0);
  close(ends[0]);
  free(text);
  fprintf(out, "sent %d: %u and %u, child %d\n", sent, both[0].msg_len, both[1].msg_len, status_of(child));
}

/* A child sends a descriptor of a pipe, by which the parent reads. */
void program_messages(FILE* out) {
  int ends[2];
  NEED(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
  union {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  char text[8] = "ready";
  struct iovec part = {text, 5};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  const pid_t child = fork_with(ends[1], ends[1]);
  if (child == 0) {
    int inner[2];
    NEED(pipe(inner));
    struct cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &inner[0], sizeof(int));
    NEED(sendmsg(ends[1], &message, 0));
    usleep(500);
    write_all(inner[1], "through");
    _exit(0);
  }
  close(ends[1]);
  memset(text, 0, sizeof text);
  part.iov_len = 3;
  const ssize_t size = recvmsg(ends[0], &message, MSG_CMSG_CLOEXEC);
  fprintf(out, "%zd %s, cut: %d\n", size, text, (message.msg_flags & MSG_TRUNC) != 0);
  int passed = -1;
  memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof passed);
  char got[16] = "";
  NEED(read(passed, got, sizeof got - 1));
  fprintf(out, "%s, then %zd\n", got, read(passed, got, 1));
  close(passed);
  close(ends[0]);
  fprintf(out, "child %d\n", status_of(child));
  two_messages_of_a_stream(out);
}
