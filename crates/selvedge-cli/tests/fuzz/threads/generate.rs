//! Random C programs with two or three threads. They are free of data races: what threads share is
//! atomic, volatile, or used under the mutex.

use std::fmt::Write as _;

use selvedge_testkit::random::Random;

/// The memory orders that loads, stores and updates may have.
const LOAD: [&str; 4] = ["relaxed", "acquire", "seq_cst", "consume"];
const STORE: [&str; 3] = ["relaxed", "release", "seq_cst"];
const UPDATE: [&str; 5] = ["relaxed", "acquire", "release", "acq_rel", "seq_cst"];

/// The number of structure types.
const TYPES: u64 = 3;

/// The number of kinds of statements that stay within their thread.
const KINDS: u64 = 16;

/// The text of the program that `seed` stands for.
pub(super) fn program(seed: u64) -> String {
    let mut generator = Generator {
        random: Random::new(seed),
        text: prelude(),
        atomic: "",
        volatile: "",
        kinds: Vec::new(),
    };
    generator.atomic = generator.pick(&["&gx", "&shared->x", "&shared->y"]);
    generator.volatile = generator.pick(&["gv", "shared->v"]);
    let few = 1 + generator.random.below(6);
    generator.kinds = (0..few).map(|_| generator.random.below(KINDS)).collect();
    generator.program();
    generator.text
}

pub(super) fn prelude() -> String {
    // Selvedge tells assertions apart by their places.
    let reports: String = (0..256)
        .map(|n| format!("    if (value == {n}) selvedge_assert_fail(\"outcome {n}\");\n"))
        .collect();
    include_str!("prelude.h").replace("@REPORTS@\n", &reports)
}

struct Generator {
    random: Random,
    text: String,
    /// The shared variables. One of each kind, so that threads meet.
    atomic: &'static str,
    volatile: &'static str,
    /// The kinds of statements that the program consists of. A few for each program: all of them together
    /// hide what one of them does.
    kinds: Vec<u64>,
}

impl Generator {
    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.random.below(all.len() as u64) as usize]
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn program(&mut self) {
        for number in 0..TYPES {
            self.structure(number);
        }
        self.line(
            "struct shared { _Atomic int x; volatile int v; _Atomic long y; struct s0 s; };
static _Atomic int gx; static volatile short gv; static struct s1 gs;
static _Atomic(struct s0 *) box;
struct start { struct shared *shared; unsigned result; };",
        );
        let threads = 2 + self.random.below(2);
        // The last thread is started by the first one, which shares its own variables with it.
        let nested = threads == 3 && self.random.once_in(2);
        if nested {
            self.thread(3, threads, false);
        }
        for thread in 1..=threads - u64::from(nested) {
            self.thread(thread, threads, nested && thread == 1);
        }
        self.main(threads - u64::from(nested));
    }

    /// A structure type and the functions that pass it around.
    fn structure(&mut self, number: u64) {
        let fields = 1 + self.random.below(5);
        let mut declared = String::new();
        let mut folded = String::new();
        let mut made = String::new();
        let mut bumped = String::new();
        for field in 0..fields {
            // Threads share the others, and volatile bit fields differ in size.
            let qualifier = match number + 1 == TYPES && self.random.once_in(3) {
                true => "volatile ",
                false => "",
            };
            let (kind, width) = match self.random.below(7) {
                0 => ("signed char", None),
                1 => ("short", None),
                2 => ("int", None),
                3 => ("long", None),
                4 => ("unsigned", Some(3 + self.random.below(20))),
                5 => ("unsigned long", Some(3 + self.random.below(50))),
                _ => ("unsigned char", Some(3 + self.random.below(5))),
            };
            let width = width.map_or(String::new(), |width| format!(" : {width}"));
            let _ = write!(declared, " {qualifier}{kind} f{field}{width};");
            let _ = write!(folded, " SEE(s FIELD f{field});");
            let _ = write!(made, " s.f{field} = k + {field};");
            if self.random.once_in(2) {
                let _ = write!(bumped, " s FIELD f{field} += k;");
            }
        }
        let s = format!("struct s{number}");
        let direct = |body: &str| body.replace(" FIELD ", ".");
        let through = |body: &str| body.replace(" FIELD ", "->");
        let text = format!(
            "{s} {{{declared} }};
FUNCTION {s} make{number}(int k) {{ {s} s;{made} return s; }}
FUNCTION unsigned sum{number}({s} s) {{ unsigned seen = 0;{} return seen; }}
FUNCTION unsigned peek{number}(const volatile {s} *s) {{ unsigned seen = 0;{} return seen; }}
FUNCTION {s} bump{number}({s} s, int k) {{{} return s; }}
FUNCTION void poke{number}({s} *s, int k) {{{} }}
static __thread {s} local{number};",
            direct(&folded),
            through(&folded),
            direct(&bumped),
            through(&bumped),
        );
        self.line(&text);
    }

    fn thread(&mut self, thread: u64, threads: u64, parent: bool) {
        let own = match parent {
            true => {
                "struct shared own = {1, 2, 3}; struct start child = {&own}; pthread_t id;\n    \
                     pthread_create(&id, 0, thread3, &child);\n    shared = &own;\n"
            }
            false => "",
        };
        self.line(&format!(
            "static void *thread{thread}(void *argument) {{
    struct start *start = argument; struct shared *shared = start->shared; unsigned seen = 0;
    begin({thread}, {threads});
    {own}"
        ));
        // Few: searches over states take a step for each access to a volatile local variable.
        let (shared, private) = match threads {
            2 => (2 + self.random.below(2), 2 + self.random.below(2)),
            _ => (1 + self.random.below(2), 1 + self.random.below(2)),
        };
        let mut left = (shared, private);
        while left.0 + left.1 > 0 {
            if self.random.below(left.0 + left.1) < left.0 {
                left.0 -= 1;
                self.line("    delay();");
                self.sharing();
            } else {
                left.1 -= 1;
                self.statement(1);
            }
        }
        if parent {
            self.line("    pthread_join(id, 0);\n    SEE(child.result); SEE(own.x); SEE(own.v); SEE(own.y);");
        }
        self.line("    start->result = seen;\n    return argument;\n}");
    }

    fn statement(&mut self, depth: u64) {
        let k = 1 + self.random.below(3);
        let t = self.random.below(TYPES);
        let kind = self.random.below(self.kinds.len() as u64);
        match self.kinds[kind as usize] {
            0 => self.line(&format!(
                "    {{ struct s{t} a = make{t}({k}); SEE(sum{t}(a)); struct s{t} b = bump{t}(a, seen & 3); SEE(peek{t}(&b)); }}"
            )),
            1 => self.line(&format!(
                "    {{ struct s{t} a; memset(&a, 0, sizeof a); poke{t}(&a, {k}); SEE(peek{t}(&a)); a = bump{t}(a, {k}); SEE(sum{t}(a)); }}"
            )),
            2 => self.line(&format!(
                "    {{ struct s{t} *h = malloc(sizeof *h); *h = make{t}({k}); poke{t}(h, 2); SEE(peek{t}(h)); SEE(sum{t}(*h)); free(h); }}"
            )),
            3 => self.line(&format!(
                "    local{t} = bump{t}(local{t}, {k}); poke{t}(&local{t}, 1); SEE(peek{t}(&local{t}));"
            )),
            4 => self.line(&format!("    SEE(locals({k}));")),
            5 => self.line(&format!(
                "    {{ volatile int top = {k}; SEE(recurse(2, &top)); SEE(top); }}"
            )),
            6 => self.line(&format!("    SEE(node({k}));")),
            7 => self.line(&format!("    SEE(spilled({k})); SEE(spilled(seen & 7));")),
            8 => self.line(&format!("    SEE(initialised({k}));")),
            9 => self.line(&format!("    SEE(viewed({k}));")),
            10 => self.line(&format!("    SEE(summed({k}, 1, (int)seen & 7, 3));")),
            11 => self.line(&format!("    SEE(array({k}));")),
            12 if depth < 3 => {
                self.line(&format!("    for (volatile int i{depth} = 0; i{depth} < {k}; i{depth}++) {{"));
                self.statement(depth + 1);
                self.line(&format!("    SEE(i{depth}); }}"));
            }
            13 if depth < 3 => {
                self.line(&format!("    if (seen & {k}) {{"));
                self.statement(depth + 1);
                self.line("    } else {");
                self.statement(depth + 1);
                self.line("    }");
            }
            14 => self.line(&format!(
                "    {{ unsigned escaped = seen; unsigned *volatile p = &escaped; *p += {k}; SEE(escaped); }}"
            )),
            _ => self.line(&format!(
                "    {{ struct s{t} a[2] = {{make{t}(1), make{t}({k})}}; volatile int i = seen & 1; a[i] = bump{t}(a[!i], 2); SEE(peek{t}(a)); SEE(sum{t}(a[1])); }}"
            )),
        }
    }

    /// An access to memory that others access too.
    fn sharing(&mut self) {
        let k = 1 + self.random.below(3);
        let (atomic, volatile) = (self.atomic, self.volatile);
        let (load, store, update) = (self.pick(&LOAD), self.pick(&STORE), self.pick(&UPDATE));
        let line = match self.random.below(10) {
            0 | 1 => format!("SEE(atomic_load_explicit({atomic}, memory_order_{load}));"),
            2 => format!("atomic_store_explicit({atomic}, {k}, memory_order_{store});"),
            3 => format!("SEE(atomic_fetch_add_explicit({atomic}, {k}, memory_order_{update}));"),
            4 => format!("SEE(atomic_exchange_explicit({atomic}, {k}, memory_order_{update}));"),
            5 => format!(
                "{{ {} expected = {k}; SEE(atomic_compare_exchange_strong({atomic}, &expected, 7)); SEE(expected); }}",
                if atomic == "&shared->y" { "long" } else { "int" },
            ),
            6 => format!("{volatile} = {k};"),
            7 => format!("SEE({volatile});"),
            8 => "pthread_mutex_lock(&mutex); gs = bump1(gs, 1); SEE(sum1(gs)); poke0(&shared->s, 1); SEE(sum0(shared->s)); pthread_mutex_unlock(&mutex);".to_owned(),
            _ => format!(
                "{{ struct s0 *mine = malloc(sizeof *mine); *mine = make0({k}); struct s0 *old = atomic_exchange_explicit(&box, mine, memory_order_acq_rel); if (old) {{ SEE(sum0(*old)); free(old); }} }}"
            ),
        };
        self.line(&format!("    {line}"));
    }

    /// Main starts the threads, waits for them, and looks at what they leave behind.
    fn main(&mut self, started: u64) {
        self.line(&format!(
            "AS_WRITTEN unsigned outcome(void) {{
    struct shared shared = {{0}}; struct start starts[{started}]; pthread_t ids[{started}]; unsigned seen = 0;"
        ));
        for thread in 0..started {
            self.line(&format!(
                "    starts[{thread}].shared = &shared; pthread_create(&ids[{thread}], 0, thread{}, &starts[{thread}]);",
                thread + 1
            ));
        }
        for thread in 0..started {
            self.line(&format!(
                "    pthread_join(ids[{thread}], 0); SEE(starts[{thread}].result);"
            ));
        }
        self.line(
            "    SEE(gx); SEE(gv); SEE(shared.x); SEE(shared.v); SEE(shared.y); SEE(sum0(shared.s)); SEE(sum1(gs));
    struct s0 *last = box; if (last) { SEE(sum0(*last)); free(last); }
    return fold(seen);
}",
        );
    }
}
