#include <unistd.h>

// Runs its arguments as root, by the set-user-ID bit of its file, like sudo.
int main(int argc, char** argv) {
  if (argc < 2 || ::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) return 126;
  ::execvp(argv[1], argv + 1);
  return 127;
}
