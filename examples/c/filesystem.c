/*
 * Threads that allocate a disk block for their inode, with a lock per inode and a lock per block.
 *
 * Thread t starts looking at block 2t modulo 26, so thread 13 meets thread 0, thread 14 meets
 * thread 1, and so on; whoever comes second moves on to the odd block behind, which nobody else
 * wants. Each pair has two orders: 2^(THREADS - 13) executions, 8 with sixteen threads.
 *
 * Check:    selvedge verify examples/c/filesystem.c
 * Expected: verified
 * Source:   C. Flanagan, P. Godefroid, "Dynamic Partial-Order Reduction for Model Checking
 *           Software", POPL 2005.
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 16
#endif

enum { BLOCKS = 26, INODES = 32 };

static pthread_mutex_t inode_lock[INODES], block_lock[BLOCKS];
static int inode[INODES], busy[BLOCKS];

static void *worker(void *arg)
{
    int i = (int)(intptr_t)arg % INODES;
    pthread_mutex_lock(&inode_lock[i]);
    for (int b = i * 2 % BLOCKS; inode[i] == 0; b = (b + 1) % BLOCKS) {
        pthread_mutex_lock(&block_lock[b]);
        if (!busy[b]) {
            busy[b] = 1;
            inode[i] = b + 1;
        }
        pthread_mutex_unlock(&block_lock[b]);
    }
    pthread_mutex_unlock(&inode_lock[i]);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int used = 0;
    for (int i = 0; i < INODES; i++)
        pthread_mutex_init(&inode_lock[i], NULL);
    for (int b = 0; b < BLOCKS; b++)
        pthread_mutex_init(&block_lock[b], NULL);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int b = 0; b < BLOCKS; b++)
        used += busy[b];
    assert(used == THREADS);
    return 0;
}
