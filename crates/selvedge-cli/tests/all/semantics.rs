//! What C says about memory and about the end of the program.

use crate::common::{Sandbox, compilers};

/// One thread frees what the other writes, after each has read `y`.
fn freed_and_written(write: &str, after: &str) -> String {
    format!(
        "#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int y;
static int *q;
static void *frees(void *unused) {{ if (y == {after}) free(q); return unused; }}
static void *writes(void *unused) {{ atomic_load(&y); {write}; y = 1; return unused; }}
int main(void) {{
    pthread_t a, b;
    q = malloc(sizeof *q);
    pthread_create(&a, 0, frees, 0);
    pthread_create(&b, 0, writes, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}}
"
    )
}

#[test]
fn a_free_that_nothing_orders_with_an_access_is_found_in_any_order() {
    let writes = [
        "*q = 1",
        "*(volatile int *)q = 1",
        "atomic_store((atomic_int *)q, 1)",
    ];
    let options: [&[&str]; 4] = [
        &[],
        &["--model", "sc", "--plain", "sc"],
        &["--model", "sc", "--algorithm", "source-dpor"],
        &["--model", "ra", "--equivalence", "reads-from"],
    ];
    for compiler in compilers() {
        for write in writes {
            let wrong = Sandbox::with("free.c", &freed_and_written(write, "0"));
            let right = Sandbox::with("free.c", &freed_and_written(write, "1"));
            for options in options {
                let verify = ["verify", "free.c", "--cc", compiler];
                let traced = [&verify, options, &["--trace-out", "trace"]].concat();
                wrong
                    .run(&traced)
                    .ends_with(1)
                    .prints("bug: use after free");
                wrong.run(&["replay", "trace"]).ends_with(1);
                right.run(&[&verify, options].concat()).ends_with(0);
            }
        }
    }
}
