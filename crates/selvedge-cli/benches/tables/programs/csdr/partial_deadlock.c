/* Three threads take two of three mutexes each and can end up in a circle, while a fourth one, which holds no lock,
 * goes on for ever: no state is without a next step. */
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t mutex[3] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
};
static atomic_int lights;

static void *take_two(void *number) {
    int me = (int)(long)number;
    pthread_mutex_lock(&mutex[me]);
    pthread_mutex_lock(&mutex[(me + 1) % 3]);
    pthread_mutex_unlock(&mutex[(me + 1) % 3]);
    pthread_mutex_unlock(&mutex[me]);
    return NULL;
}

static void *blink(void *unused) {
    for (;;) {
        atomic_store(&lights, 1);
        atomic_store(&lights, 0);
    }
    return unused;
}

int main(void) {
    pthread_t threads[4];
    pthread_create(&threads[3], NULL, blink, NULL);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, take_two, (void *)i);
    pthread_exit(NULL);
}
