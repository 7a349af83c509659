//! Frames for small programs.

/// The headers that every program includes.
const HEADERS: &str = r#"
    #define _GNU_SOURCE
    #include <assert.h>
    #include <errno.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <stdatomic.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <time.h>
    #include <unistd.h>
    int shared;
"#;

/// A program with two threads that run `body` as number `me`.
pub fn two_threads(globals: &str, body: &str, before: &str, after: &str) -> String {
    format!(
        r#"
        {HEADERS}
        {globals}
        static void *worker(void *argument) {{
            int me = (int)(long)argument; (void)me;
            {body}
            return 0;
        }}
        int main(void) {{
            pthread_t a, b;
            {before}
            pthread_create(&a, 0, worker, (void *)1);
            pthread_create(&b, 0, worker, (void *)2);
            pthread_join(a, 0);
            pthread_join(b, 0);
            {after}
            return 0;
        }}
    "#
    )
}

/// A program with main only.
pub fn alone(body: &str) -> String {
    program("", body)
}

/// A program with main and what it needs.
pub fn program(globals: &str, body: &str) -> String {
    format!("{HEADERS} {globals}\nint main(void) {{ {body} return 0; }}")
}
