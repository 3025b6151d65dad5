#include "support/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/onnxvram-test-XXXXXX";

int folder_enter(void **state)
{
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

int folder_leave(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return chdir("/") != 0 || system(command) != 0;
}
