//! Tests the accesses of the C library's functions to memory: every row of the tables is called
//! with memory that another thread accesses, that was freed, that is too small, and that is the
//! checker's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use selvedge_runtime::symbols::{self, Argument, Class, Direction, Extent, Function, Memory};

use crate::common::{Sandbox, compilers};

/// The fault of the memory that an argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Race,
    Freed,
    Short,
    Foreign,
    /// Nothing: the case tells whether the function changes it.
    None,
    /// Nothing either: the case calls the function in a loop that waits, and tells whether that changes it.
    InLoop,
}

/// Where the worker has a page of its own that it writes to all the time.
const FOREIGN: usize = 0x1000_0000;

impl Fault {
    const ALL: [Fault; 4] = [Fault::Race, Fault::Freed, Fault::Short, Fault::Foreign];

    /// The name of this kind of bug.
    fn kind(self) -> &'static str {
        match self {
            Fault::Race => "data-race",
            Fault::Freed => "use-after-free",
            Fault::Short => "heap-overflow",
            Fault::Foreign => "wild-access",
            Fault::None | Fault::InLoop => "abort",
        }
    }
}

const PROLOGUE: &str = r#"
typedef unsigned long word;
word selvedge_choose(word n); void *malloc(word n); void free(void *p); void abort(void);
void *memcpy(void *, const void *, word);
word pthread_create(word *t, void *a, void *f, void *p); word pthread_join(word t, void **r); word pthread_self(void);
extern void *stdout;
static char *block; static word size; static int writes, sink;
static char many[1 << 12];
static _Atomic int flag;
static void *raise_flag(void *argument) { flag = 1; return argument; }
static void *nothing(void *argument) { return argument; }
static int compare(const int *a, const int *b) { return *a - *b; }
static word thread(void) { word t; pthread_create(&t, 0, nothing, 0); return t; }
static word locale(void) { word newlocale(int, const char *, word); return newlocale(0x1fbf, "C", 0); }
static void *other(void *argument) {
    for (word i = 0; i < size; i++)
        if (writes) block[i] = 1; else sink += block[i];
    return argument;
}
static void *other_as_a_whole(void *argument) {
    char copy[64];
    memcpy(copy, block, size); memcpy(block, copy, size);
    return argument;
}
static void *of(const void *contents, word size) { void *p = malloc(size); memcpy(p, contents, size); return p; }
static char *words[] = {"12", "--x", 0};
static word pieces[] = {(word)many, 8};
int setjmp(void *) __attribute__((returns_twice));
"#;

/// The declarations that the rows of the environment use.
const ENVIRONMENT: &str = r#"
word open(const char *, word, ...); word eventfd(word, word); word timerfd_create(word, word);
word socketpair(word, word, word, int *); word write(word, const void *, word); word epoll_create(word);
word epoll_ctl(word, word, word, void *); word fopen(const char *, const char *);
static word file(void) { return open("data", 2); }
static word stream(void) { return fopen("data", "r"); }
static word event(void) { return eventfd(1, 0); }
static word timer(void) { return timerfd_create(1, 0); }
static word connection(void) { int ends[2]; socketpair(1, 1, 0, ends); write(ends[1], many, 8); return ends[0]; }
static word ready(void) { char event_in[12] = {1}; word e = epoll_create(1); epoll_ctl(e, 1, event(), event_in); return e; }
"#;

/// The call that is needed before a function may be called, where its arguments are `p0`, `p1`, and so on.
const BEFORE: &[(&str, &str)] = &[
    ("pthread_mutex_unlock", "pthread_mutex_lock(p0)"),
    ("pthread_rwlock_unlock", "pthread_rwlock_rdlock(p0)"),
    ("pthread_spin_unlock", "pthread_spin_lock(p0)"),
    ("mtx_unlock", "mtx_lock(p0)"),
    ("pthread_cond_wait", "pthread_mutex_lock(p1)"),
    ("pthread_cond_timedwait", "pthread_mutex_lock(p1)"),
    ("pthread_cond_clockwait", "pthread_mutex_lock(p1)"),
    ("cnd_wait", "mtx_lock(p1)"),
    ("cnd_timedwait", "mtx_lock(p1)"),
    ("pthread_barrier_wait", "pthread_barrier_init(p0, 0, 1)"),
    ("sem_wait", "sem_init(p0, 0, 1)"),
    ("__cxa_guard_release", "__cxa_guard_acquire(p0)"),
    ("__cxa_guard_abort", "__cxa_guard_acquire(p0)"),
];

/// The bytes of memory that an argument points to, as a C expression, and how many there are.
fn contents(function: &Function, memory: Memory, directory: usize) -> (String, usize) {
    let value = |nth: usize| match function.arguments[nth] {
        Argument::Value { sample, .. } => sample.parse().expect("an extent is a number"),
        Argument::Pointer(_) => panic!("an extent is no pointer"),
    };
    let zeroes = |size: usize| ("many".to_owned(), size);
    match memory.extent {
        Extent::Fixed(16) if function.name.starts_with("getopt") => ("words".to_owned(), 16),
        Extent::Fixed(16) if function.name.ends_with("v") => ("pieces".to_owned(), 16),
        Extent::Fixed(64) if function.name.contains("longjmp") => ("saved".to_owned(), 64),
        Extent::Fixed(size) => zeroes(size),
        Extent::Pointer => ("words".to_owned(), 8),
        Extent::List => ("list".to_owned(), 24),
        Extent::String { sample, room } => match memory.direction {
            Direction::In => (format!("\"{sample}\""), sample.len() + 1),
            // The rest of the room is for what is appended.
            _ => (
                format!(
                    "\"{sample}\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\""
                ),
                room,
            ),
        },
        Extent::WideString { sample } => (format!("L\"{sample}\""), 4 * (sample.len() + 1)),
        Extent::Bytes(nth) => zeroes(value(nth)),
        Extent::Wides(nth) => zeroes(4 * value(nth)),
        Extent::Pairs(nth) => zeroes(value(nth)),
        Extent::Array(count, size) => zeroes(value(count) * value(size)),
        Extent::First(_) => zeroes(1),
        Extent::Number(_) => ("\"12\"".to_owned(), 3),
        Extent::Text(_) if function.name == "getcwd" => zeroes(directory),
        Extent::Text(_) => zeroes(5),
    }
}

fn type_name(class: Class) -> &'static str {
    match class {
        Class::Word => "word",
        Class::Float => "float",
        Class::Double => "double",
        Class::LongDouble => "long double",
    }
}

/// The number of the argument that is a list of those behind it.
fn list(function: &Function) -> Option<usize> {
    function.arguments.iter().position(
        |argument| matches!(argument, Argument::Pointer(memory) if memory.extent == Extent::List),
    )
}

/// A declaration of the function under a name that no compiler knows.
fn declaration(function: &Function) -> String {
    let passed = list(function).map_or(function.arguments.len(), |list| list + 1);
    let declared = &function.arguments[..function.fixed.unwrap_or(passed)];
    let types = declared.iter().map(|argument| match argument {
        Argument::Value { class, .. } => type_name(*class),
        Argument::Pointer(_) => "void *",
    });
    let mut types: Vec<&str> = types.collect();
    types.extend(function.fixed.map(|_| "..."));
    let (name, result) = (&function.name, type_name(function.result));
    let types = types.join(", ");
    format!("extern {result} the_{name}({types}) __asm__(\"{name}\");\n")
}

/// A C function that calls `function` with a fault in argument `nth`. The name of the current directory takes
/// this many bytes.
fn case(function: &Function, nth: usize, fault: Fault, directory: usize) -> String {
    let mut text = format!(
        "static void {}_{nth}_{fault:?}(void) {{\n    word t = 0;\n",
        function.name
    );
    let (mut call, mut faulty) = (Vec::new(), 0);
    if function.name.contains("longjmp") {
        text += "    char saved[64];\n    if (setjmp(saved)) goto end;\n";
    }
    let list = list(function);
    let mut place_of = |text: &mut String, place: usize, memory: Memory| {
        if place == nth && fault == Fault::Foreign {
            let _ = writeln!(text, "    void *p{place} = (void *){FOREIGN:#x};");
            return;
        }
        let (contents, size) = contents(function, memory, directory);
        let short = match memory.extent {
            // Compiled code reads the parts of a list that it needs.
            Extent::List => 16,
            _ => 1,
        };
        let size = size - usize::from(place == nth && fault == Fault::Short) * short;
        let _ = writeln!(text, "    void *p{place} = of({contents}, {size});");
        if place == nth {
            faulty = size;
        }
    };
    for (place, argument) in function.arguments.iter().enumerate() {
        match *argument {
            Argument::Value {
                class: Class::Word,
                sample,
            } => call.push(format!("(word)({sample})")),
            Argument::Value { sample, .. } => call.push(sample.to_owned()),
            Argument::Pointer(memory) => {
                call.push(format!("p{place}"));
                if list != Some(place) {
                    place_of(&mut text, place, memory);
                }
            }
        }
    }
    if let Some(place) = list {
        // A list whose arguments in registers are used up, as the x86-64 ABI lays it out.
        let inside = call.split_off(place + 1).join(", (word)");
        let _ = writeln!(
            text,
            "    word inside[] = {{(word){inside}}}, list[] = {{176UL << 32 | 48, (word)inside, 0}};"
        );
        if let Argument::Pointer(memory) = function.arguments[place] {
            place_of(&mut text, place, memory);
        }
    }
    let before = BEFORE.iter().find(|(name, _)| *name == function.name);
    if let Some((_, before)) = before.filter(|_| matches!(fault, Fault::Race | Fault::Freed)) {
        let _ = writeln!(text, "    {before};");
    }
    match fault {
        Fault::Race => {
            let Argument::Pointer(memory) = function.arguments[nth] else {
                unreachable!("only memory has faults")
            };
            let writes = u8::from(memory.direction != Direction::Out);
            let other = match memory.direction {
                // Writing over a part of an object ends the search as incomplete.
                Direction::Object => "other_as_a_whole",
                _ => "other",
            };
            let _ = writeln!(
                text,
                "    block = p{nth}; size = {faulty}; writes = {writes};\n    \
                 pthread_create(&t, 0, {other}, 0);"
            );
        }
        Fault::Freed => {
            let _ = writeln!(text, "    free(p{nth});");
        }
        Fault::Short | Fault::Foreign => {}
        Fault::None | Fault::InLoop => {
            let repeats = match fault {
                Fault::InLoop => "pthread_create(&t, 0, raise_flag, 0); while (!flag)",
                _ => "",
            };
            let (name, call) = (&function.name, call.join(", "));
            let _ = writeln!(
                text,
                "    char before[{faulty}]; memcpy(before, p{nth}, {faulty});\n    \
                 {repeats} the_{name}({call});\n    \
                 for (word i = 0; i < {faulty}; i++) if (((char *)p{nth})[i] != before[i]) abort();\n\
                 end:\n    if (t) pthread_join(t, 0);\n}}"
            );
            return text;
        }
    }
    let _ = writeln!(text, "    the_{}({});", function.name, call.join(", "));
    // Nothing was noticed.
    text += "end:\n    if (t) pthread_join(t, 0);\n    abort();\n}\n";
    text
}

/// Where the bugs of functions are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At their calls.
    Call,
    /// In their own code: a bug that two functions have there is reported once.
    Inside,
}

/// Adds a `main` that calls one of the cases.
fn choose<'a>(program: &mut String, cases: impl Iterator<Item = &'a String>) {
    let all: Vec<&str> = cases.map(String::as_str).collect();
    let _ = write!(
        program,
        "static void (*const all[])(void) = {{{}}};\nint main(void) {{ all[selvedge_choose({})](); }}\n",
        all.join(", "),
        all.len()
    );
}

/// Calls every function with every fault in each of its arguments. `helpers` is what their rows use.
fn walk(functions: &[Function], helpers: &str, place: Place, cases: usize) {
    let sandbox = Sandbox::new();
    let directory = sandbox.path("").canonicalize().expect("it exists");
    let directory = directory.as_os_str().len() + 1;
    let mut program = PROLOGUE.to_owned() + helpers;
    let mut expected = BTreeMap::new();
    for function in functions {
        let mut declared = false;
        for (nth, argument) in function.arguments.iter().enumerate() {
            if !matches!(argument, Argument::Pointer(_)) {
                continue;
            }
            if !declared {
                program += &declaration(function);
                declared = true;
            }
            for fault in Fault::ALL {
                program += &case(function, nth, fault, directory);
                let name = format!("{}_{nth}_{fault:?}", function.name);
                expected.insert(name, fault.kind());
            }
        }
    }
    assert!(expected.len() > cases, "{} cases", expected.len());
    choose(&mut program, expected.keys());
    sandbox.write("all.c", &program);
    sandbox.write("data", "1234567\n1234567\n");
    for compiler in compilers() {
        let options = [
            "--keep-going",
            "--no-advice",
            "--stdin",
            "data",
            "--format",
            "json",
            "--cc",
            compiler,
        ];
        let arguments = [
            &["verify", "all.c"],
            &options[..],
            &["--", "-fno-builtin", "-w"],
        ]
        .concat();
        let report = sandbox.run(&arguments).json();
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for bug in report["bugs"].as_array().into_iter().flatten() {
            let kind = bug["kind"].as_str().unwrap_or_default();
            // A race has two parties, one of which is the call.
            let frames = bug["stacks"].as_array().into_iter().flatten();
            let frames = frames.flat_map(|stack| stack["frames"].as_array().into_iter().flatten());
            let frames = frames.chain([bug, &bug["other"]]);
            let names = frames.filter_map(|frame| frame["function"].as_str());
            for name in names.filter(|name| expected.contains_key(*name)) {
                let kinds = found.entry(name.to_owned()).or_default();
                kinds.insert(kind.to_owned());
            }
        }
        let is_found = |name: &str, kind: &str| match (found.get(name), place) {
            (Some(kinds), _) => kinds.contains(kind) && !kinds.contains("abort"),
            // The program's own function makes the accesses.
            (None, place) => place == Place::Inside || name.starts_with("bsearch_"),
        };
        let missed = expected.iter().filter(|(name, kind)| !is_found(name, kind));
        let missed: Vec<String> = missed
            .map(|(name, kind)| format!("{name}: {kind}, not {:?}", found.get(name)))
            .collect();
        let reason = &report["reason"];
        assert!(
            missed.is_empty() && reason.is_null(),
            "{compiler}, {reason}: {missed:#?}"
        );
    }
}

#[test]
fn every_access_of_a_library_function_is_checked() {
    walk(symbols::functions(), "", Place::Call, 1200);
}

#[test]
fn every_access_of_the_modelled_environment_is_checked() {
    walk(symbols::environment(), ENVIRONMENT, Place::Inside, 300);
}

/// A loop that waits makes no progress of its own, unless it writes to memory: what a function has written
/// in its rounds is there afterwards.
#[test]
fn what_library_functions_write_in_a_loop_that_waits_stays() {
    let sandbox = Sandbox::new();
    let (mut program, mut cases) = (PROLOGUE.to_owned(), BTreeSet::new());
    for function in symbols::functions() {
        let writes = |argument: &Argument| match argument {
            Argument::Pointer(memory) => {
                matches!(memory.direction, Direction::Out | Direction::InOut)
                    && memory.extent != Extent::List
            }
            Argument::Value { .. } => false,
        };
        let written = (0..function.arguments.len()).filter(|&n| writes(&function.arguments[n]));
        for (count, nth) in written.enumerate() {
            if count == 0 {
                program += &declaration(function);
            }
            for fault in [Fault::None, Fault::InLoop] {
                program += &case(function, nth, fault, 64);
                cases.insert(format!("{}_{nth}_{fault:?}", function.name));
            }
        }
    }
    choose(&mut program, cases.iter());
    sandbox.write("all.c", &program);
    sandbox.write("data", "1234567\n1234567\n");
    let options = "verify all.c --keep-going --no-advice --unroll 2 --stdin data --format json";
    let flags = ["--", "-fno-builtin", "-w"];
    let report = sandbox
        .run(&[&options.split(' ').collect::<Vec<_>>(), &flags[..]].concat())
        .json();
    let bugs = report["bugs"].as_array().into_iter().flatten();
    let found = |bug: &serde_json::Value| {
        let name = bug["function"].as_str()?.to_owned();
        Some((name, bug["kind"] == "abort"))
    };
    let found: BTreeMap<String, bool> = bugs.filter_map(found).collect();
    let changes = found.iter().filter(|(_, changes)| **changes);
    let once: Vec<&str> = changes
        .filter_map(|(name, _)| name.strip_suffix("_None"))
        .collect();
    // Strings that are appended to in a loop overflow first.
    let in_loop = |name: &str| found.contains_key(&format!("{name}_InLoop"));
    let missed: Vec<&&str> = once.iter().filter(|name| !in_loop(name)).collect();
    assert!(
        once.len() > 90 && missed.is_empty(),
        "{} change memory, {missed:?} not in a loop",
        once.len()
    );
}
