#include "programs.h"

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
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
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
}
