/* textgen: the front door. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        printf("textgen %s\n", TG_VERSION);
        return 0;
    }
    printf("usage: textgen COMMAND [options]\n");
    return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 64;
}
