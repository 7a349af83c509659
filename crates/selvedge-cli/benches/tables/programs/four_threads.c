// Four threads with five to nine accesses each to four variables, drawn at random: 70,034 executions under sc.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int a, b, c, d;

static void *thread_1(void *unused) {
    (void)unused;
    (void)atomic_load(&c);
    (void)atomic_load(&c);
    (void)atomic_load(&b);
    atomic_store(&b, 103);
    (void)atomic_load(&a);
    (void)atomic_load(&a);
    (void)atomic_load(&c);
    atomic_store(&c, 107);
    (void)atomic_load(&c);
    return NULL;
}

static void *thread_2(void *unused) {
    (void)unused;
    (void)atomic_load(&b);
    (void)atomic_load(&c);
    (void)atomic_load(&a);
    (void)atomic_load(&a);
    (void)atomic_load(&b);
    return NULL;
}

static void *thread_3(void *unused) {
    (void)unused;
    atomic_store(&a, 300);
    (void)atomic_load(&a);
    (void)atomic_load(&c);
    atomic_store(&a, 303);
    (void)atomic_load(&c);
    (void)atomic_load(&d);
    (void)atomic_load(&b);
    atomic_store(&a, 307);
    (void)atomic_load(&b);
    return NULL;
}

static void *thread_4(void *unused) {
    (void)unused;
    atomic_store(&b, 400);
    (void)atomic_load(&c);
    (void)atomic_load(&c);
    (void)atomic_load(&d);
    atomic_store(&b, 404);
    return NULL;
}

int main(void) {
    void *(*const bodies[4])(void *) = {thread_1, thread_2, thread_3, thread_4};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
