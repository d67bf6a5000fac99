/* Maps executable files of the folder argv[1] that have no name any more: one called "planted" before and
 * after the others, so that arm copies it last whichever way it goes. Prints "ready" and waits. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void map(const char *folder, const char *name)
{
    static char text[5000] = "* * * * * root true\n";
    char path[4096];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, text, sizeof(text)) != sizeof(text) ||
        mmap(NULL, sizeof(text), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    unlink(path);
    close(fd);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"planted", "first", "second", "third", "planted"};

    for (int i = 0; i < 5 && argc > 1; i++)
        map(argv[1], names[i]);
    puts("ready");
    fflush(stdout);
    for (;;)
        usleep(1000);
}
