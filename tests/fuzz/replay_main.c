/* SPDX-License-Identifier: MIT */
/*
 * Feeds a corpus to a fuzz target as a plain test: the empty input, then every file of the folders
 * given.
 *
 * A target reports by crashing. Each file is named before it is fed, so the last name is the
 * culprit. Inputs are copied to a block of exactly their size: a sanitizer sees a read one byte too
 * far.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a target does first, if it has anything to do; it may take arguments away from the front. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Returns 0, or -errno if the file could not be read. */
static int replay_file(const char *path, size_t size) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return -errno;
    int status = -ENOMEM;
    uint8_t *data = malloc(size ? size : 1);
    if (data) {
        status = fread(data, 1, size, file) == size ? 0 : -EIO;
        if (status == 0)
            LLVMFuzzerTestOneInput(data, size);
    }
    free(data);
    fclose(file);
    return status;
}

/* Returns the number of files fed, or -errno. */
static int replay_folder(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        return -errno;
    int fed = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
        if (fed < 0)
            continue;
        if (stat(path, &info) != 0) {
            fed = -errno;
        } else if (S_ISREG(info.st_mode)) {
            printf("# %s\n", path);
            fflush(stdout);
            int status = replay_file(path, (size_t)info.st_size);
            fed = status < 0 ? status : fed + 1;
        }
    }
    free(entries);
    return fed;
}

int main(int argc, char **argv) {
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    int fed = 1;
    uint8_t nothing[1] = {0};
    LLVMFuzzerTestOneInput(nothing, 0);
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);
        if (count < 0) {
            printf("# %s: %s\nnot ok 1 - replay\n1..1\n", argv[i], strerror(-count));
            return 1;
        }
        fed += count;
    }
    printf("ok 1 - replayed %d input(s)\n1..1\n", fed);
    return 0;
}
