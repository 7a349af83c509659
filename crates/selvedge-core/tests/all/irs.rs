//! Proven waits against a simulation of their enforcement that looks at every state.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use selvedge_core::irs::{
    self, Demand, Demands, EventPlace, Impossible, Outcome, Reason, Settings, Verified, Watcher,
};
use selvedge_core::report::Ending;
use selvedge_core::{Effect, Location, Machine, Op, Pending, Site, Stop, ThreadId, Value};
use selvedge_testkit::{Flavour, Instruction, Program, ScriptMachine, brute_force, random_program};

const PROGRAMS: u64 = 50;
const LIMIT: usize = 1_500;

/// Keeps everything that is published.
#[derive(Default)]
struct Published(Vec<Verified>);

impl Watcher<ScriptMachine> for Published {
    fn proven(&mut self, verified: &Verified, _: &ScriptMachine) -> ControlFlow<()> {
        self.0.push(verified.clone());
        ControlFlow::Continue(())
    }
}

/// The knowledge of enforcement.
struct Enforced<'a> {
    demands: &'a Demands,
    counted: &'a dyn Fn(Site) -> bool,
    places: HashMap<ThreadId, Option<EventPlace>>,
}

#[derive(Clone)]
struct State {
    machine: ScriptMachine,
    memory: HashMap<Location, Value>,
    counters: Vec<u32>,
    children: Vec<u32>,
}

/// The key that tells states apart.
#[derive(PartialEq, Eq, Hash, Clone)]
struct Key {
    threads: Vec<(u64, [Value; 4], String)>,
    memory: Vec<(u32, Value)>,
    counters: Vec<u32>,
    children: Vec<u32>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Some thread can fail.
    fails: bool,
    /// A state can be reached from which there is no end.
    stuck: bool,
    /// All threads can come to their end.
    ends: bool,
}

impl Enforced<'_> {
    /// Whether `thread` will perform nothing any more.
    fn over(&self, state: &State, thread: ThreadId) -> bool {
        match state.machine.pending(thread) {
            Pending::Stopped(stop) => stop == Stop::Finished,
            Pending::Op(_) => false,
            Pending::Absent => match self.places.get(&thread).copied().flatten() {
                Some((parent, _)) => self.over(state, parent),
                None => true,
            },
        }
    }

    fn allows(&self, state: &State, thread: ThreadId) -> bool {
        if !(self.counted)(state.machine.site(thread)) {
            return true;
        }
        let number = state.counters[thread.index()];
        let mut waits = self.demands.iter();
        waits.all(|wait| {
            let here = wait.thread == thread && wait.event == number;
            let source = wait.source;
            !here || state.counters[source.index()] >= wait.count || self.over(state, source)
        })
    }

    /// The steps that can be taken, each with its alternatives.
    fn steps(&self, state: &State) -> Vec<(ThreadId, u32)> {
        let machine = &state.machine;
        let all = (0..machine.threads() as u32).map(ThreadId);
        let ended = |thread: ThreadId| {
            matches!(
                machine.pending(thread),
                Pending::Absent | Pending::Stopped(Stop::Finished | Stop::Failed)
            )
        };
        let alternatives = |thread: ThreadId| match machine.pending(thread) {
            Pending::Op(op) => match op {
                Op::Join { child } => u32::from(ended(child)),
                Op::Choose { alternatives } => alternatives,
                Op::Update { at, function, .. } => match function.apply(state.value(at)) {
                    Effect::Block => 0,
                    Effect::Choose(n) => n,
                    _ => 1,
                },
                _ => 1,
            },
            _ => 0,
        };
        all.flat_map(|thread| (0..alternatives(thread)).map(move |choice| (thread, choice)))
            .filter(|&(thread, _)| self.allows(state, thread))
            .collect()
    }

    /// Visits every state.
    fn explore(&self, program: &Program) -> Seen {
        let machine = ScriptMachine::without_parking(program.clone());
        let threads = machine.threads();
        let first = State {
            machine,
            memory: HashMap::new(),
            counters: vec![0; threads],
            children: vec![0; threads],
        };
        let mut seen = Seen::default();
        let mut numbers: HashMap<Key, usize> = HashMap::new();
        let mut before: Vec<Vec<usize>> = Vec::new();
        let mut good: Vec<usize> = Vec::new();
        let mut open = vec![(first.key(self.demands), first, None)];
        while let Some((key, state, from)) = open.pop() {
            if let Some(&known) = numbers.get(&key) {
                before[known].extend(from);
                continue;
            }
            let number = before.len();
            numbers.insert(key, number);
            before.push(from.into_iter().collect());
            let stopped = |stop| {
                let mut all = (0..threads as u32).map(ThreadId);
                all.any(|thread| state.machine.pending(thread) == Pending::Stopped(stop))
            };
            if stopped(Stop::Failed) || stopped(Stop::Assumed) {
                seen.fails |= stopped(Stop::Failed);
                good.push(number);
                continue;
            }
            let steps = self.steps(&state);
            if steps.is_empty() {
                let mut all = (0..threads as u32).map(ThreadId);
                let waits = all.any(|t| matches!(state.machine.pending(t), Pending::Op(_)));
                seen.ends |= !waits;
                if !waits {
                    good.push(number);
                }
            }
            for (thread, choice) in steps {
                let mut next = state.clone();
                next.step(thread, choice, self.counted);
                open.push((next.key(self.demands), next, Some(number)));
            }
        }
        // Every state must lead to an end.
        let mut ends = vec![false; before.len()];
        while let Some(number) = good.pop() {
            if !std::mem::replace(&mut ends[number], true) {
                good.extend(&before[number]);
            }
        }
        seen.stuck = !ends.iter().all(|&ends| ends);
        seen
    }
}

impl State {
    fn value(&self, at: Location) -> Value {
        let held = self.memory.get(&at).copied();
        held.unwrap_or_else(|| self.machine.initial(at))
    }

    fn step(&mut self, thread: ThreadId, choice: u32, counted: &dyn Fn(Site) -> bool) {
        let Pending::Op(op) = self.machine.pending(thread) else {
            panic!("no step to take");
        };
        let site = self.machine.site(thread);
        let mut outcome = selvedge_core::Outcome::default();
        match op {
            Op::Load { at, .. } => outcome.read = self.value(at),
            Op::Store { at, value, .. } => drop(self.memory.insert(at, value)),
            Op::Update { at, function, .. } => {
                outcome.read = self.value(at);
                outcome.wrote = match function.apply(outcome.read) {
                    Effect::Write(value) => Some(value),
                    Effect::Choose(_) => Some(function.choose(outcome.read, choice)),
                    _ => None,
                };
                if let Some(value) = outcome.wrote {
                    self.memory.insert(at, value);
                }
            }
            Op::Choose { .. } => outcome.read = choice.into(),
            Op::Create { .. } => self.children[thread.index()] += 1,
            _ => {}
        }
        self.machine.resume(thread, outcome, &[]);
        self.counters[thread.index()] += u32::from(counted(site));
    }

    fn key(&self, demands: &Demands) -> Key {
        let all = (0..self.machine.threads() as u32).map(ThreadId);
        let threads = all.clone().map(|thread| {
            let pending = self.machine.pending(thread);
            let site = self.machine.site(thread).0;
            (site, self.machine.registers(thread), format!("{pending:?}"))
        });
        let mut memory: Vec<_> = self
            .memory
            .iter()
            .map(|(at, &value)| (at.0, value))
            .collect();
        memory.sort_unstable();
        // Past what matters nobody counts.
        let counters = all.map(|thread| self.counters[thread.index()].min(demands.limit(thread)));
        Key {
            threads: threads.collect(),
            memory,
            counters: counters.collect(),
            children: self.children.clone(),
        }
    }
}

fn simulate(program: &Program, verified: &Verified, demands: &Demands) -> Seen {
    let counted = |site: Site| verified.counted.contains(&site);
    let enforced = Enforced {
        demands,
        counted: &counted,
        places: verified.inputs[0].threads().into_iter().collect(),
    };
    enforced.explore(program)
}

fn check(program: &Program) -> Option<usize> {
    // In steps that are as small as possible, and in whole ones.
    let patience = |patience| Settings {
        patience,
        ..Settings::default()
    };
    check_with(program, patience(0));
    check_with(program, patience(10_000))
}

fn check_with(program: &Program, settings: Settings) -> Option<usize> {
    let mut machine = ScriptMachine::new(program.clone());
    let all = brute_force(&mut machine, LIMIT)?;
    let correct = !all.fails && all.stuck.is_empty();
    let mut published = Published::default();
    let result = irs::verify(&mut machine, settings, None, &mut published);
    let (verified, outcome) = match result {
        Ok(result) => result,
        Err(Impossible::NoTrace(_)) => {
            // A later choice may make a thread spin under every schedule.
            let mut instructions = program.threads.iter().flatten();
            let chooses = instructions.any(|i| matches!(i, Instruction::Choose(..)));
            let hopeless = !correct || all.complete.is_empty();
            assert!(hopeless || chooses, "{program:?}");
            return None;
        }
        Err(other) => panic!("{other:?}\n{program:?}"),
    };
    assert_eq!(outcome, Outcome::Done, "{program:?}");
    check_resumed(program, settings, &published.0, &verified);
    check_interrupted(program, settings, &verified);
    let mut earlier: Option<&Verified> = None;
    let mut looked_at = HashSet::new();
    for verified in &published.0 {
        let demands = &verified.inputs[0].demands;
        let what = || format!("{demands:?}\n{program:?}");
        if let Some(earlier) = earlier {
            let before = &earlier.inputs[0].demands;
            assert!(
                demands.iter().all(|d| before.implies(d)),
                "{before:?} {}",
                what()
            );
            assert_eq!(earlier.counted, verified.counted);
        }
        earlier = Some(verified);
        if looked_at.insert(format!("{demands:?}")) {
            let seen = simulate(program, verified, demands);
            let expected = Seen {
                fails: false,
                stuck: false,
                ends: true,
            };
            assert_eq!(seen, expected, "{}", what());
        }
    }
    let relaxed = &verified.inputs[0];
    if correct {
        assert!(
            relaxed.demands.is_empty(),
            "{:?}\n{program:?}",
            relaxed.demands
        );
        assert_eq!(relaxed.traces, all.complete.len() as u64, "{program:?}");
    } else {
        assert!(!relaxed.demands.is_empty(), "{program:?}");
        for kept in &relaxed.kept {
            if let Reason::Bug(_) = kept.reason
                && relaxed.demands.implies(&kept.demand)
            {
                let others = relaxed.demands.replaced(&kept.demand, []);
                let seen = simulate(program, &verified, &others);
                assert!(
                    seen.fails || seen.stuck,
                    "{:?} is not needed\n{program:?}",
                    kept.demand
                );
            }
        }
    }
    Some(published.0.len())
}

/// A proof that is continued half-way comes to the same end.
fn check_resumed(program: &Program, settings: Settings, published: &[Verified], whole: &Verified) {
    let saved = published[published.len() / 2].save();
    let mut machine = ScriptMachine::new(program.clone());
    let watcher = &mut Published::default();
    let (again, outcome) = irs::verify(&mut machine, settings, Some(saved), watcher).unwrap();
    assert_eq!(outcome, Outcome::Done);
    let ends = |verified: &Verified| {
        let input = &verified.inputs[0];
        (input.demands.clone(), input.traces, input.kept.clone())
    };
    assert_eq!(ends(&again), ends(whole), "{program:?}");
}

/// Stops after this many executions, wherever the proof stands then.
struct Killed(u64);

impl Watcher<ScriptMachine> for Killed {
    fn pauses(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }

    fn proven(&mut self, _: &Verified, _: &ScriptMachine) -> ControlFlow<()> {
        match self.0 {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A proof that is interrupted again and again, also within steps, comes to the same end, and no execution is explored
/// twice because of that.
fn check_interrupted(program: &Program, settings: Settings, whole: &Verified) {
    let mut saved = None;
    // Every restart explores two executions that were not explored before.
    for _ in 0..10_000 {
        let mut machine = ScriptMachine::new(program.clone());
        let watcher = &mut Killed(3);
        let (verified, outcome) = irs::verify(&mut machine, settings, saved, watcher).unwrap();
        if outcome == Outcome::Done {
            let ends = |verified: &Verified| {
                let input = &verified.inputs[0];
                (input.demands.clone(), input.traces, input.kept.clone())
            };
            assert_eq!(ends(&verified), ends(whole), "{program:?}");
            return;
        }
        assert_eq!(outcome, Outcome::Ended(Ending::Stopped));
        let bytes = serde_json::to_vec(&verified.save()).unwrap();
        saved = Some(serde_json::from_slice(&bytes).unwrap());
    }
    panic!("no progress: {program:?}");
}

#[test]
fn whatever_is_published_for_random_programs_is_safe_and_ends() {
    for flavour in Flavour::ALL {
        let mut checked = 0;
        for seed in 0..PROGRAMS {
            let program = random_program(seed, flavour);
            let result = std::panic::catch_unwind(|| check(&program));
            match result {
                Ok(published) => checked += usize::from(published.is_some()),
                Err(_) => panic!("{flavour:?} {seed}"),
            }
        }
        assert!(
            checked > PROGRAMS as usize / 3,
            "{flavour:?}: only {checked}"
        );
    }
}

/// Two threads that add one without holding anything; main finds out.
fn lost_update() -> Program {
    use Instruction::{AssertNot, Load};
    let worker = |_| {
        vec![
            Load(0, 0),
            Instruction::JumpIf(0, 1, 4),
            Instruction::Store(0, 1),
            Instruction::JumpIf(1, 0, 5),
            Instruction::Store(0, 2),
        ]
    };
    let mut program = Program::of_workers((0..2).map(worker).collect());
    program.threads[0].extend([Load(0, 0), AssertNot(0, 1)]);
    program
}

/// Operations of main before it creates a thread need no wait, so none is left behind when a wait is taken back.
#[test]
fn what_comes_before_by_nature_is_no_weaker_wait() {
    use Instruction::{AssertNot, Create, Join, Load, Store};
    let worker = vec![Load(0, 0), Instruction::compare_exchange(1, 0, 1, 2)];
    let main = vec![
        Store(0, 1),
        Create(1),
        Load(1, 0),
        Store(0, 3),
        Join(1),
        Load(0, 0),
        AssertNot(0, 2),
    ];
    let threads = vec![main, worker];
    let initial = Vec::new();
    check(&Program { threads, initial });
}

/// Main picks what the workers add; only adding two and two goes wrong.
#[test]
fn each_input_has_waits_of_its_own() {
    use Instruction::{AssertNot, Choose, Create, JumpIf, Load};
    let mut program = lost_update();
    let main = &mut program.threads[0];
    // With input 0 main waits for the first worker before it creates the second.
    main[0] = Choose(2, 2);
    main.truncate(1);
    main.extend([
        Create(1),
        JumpIf(2, 1, 4),
        Instruction::Join(1),
        Create(2),
        Instruction::Join(1),
        Instruction::Join(2),
        Load(0, 0),
        AssertNot(0, 1),
    ]);
    let mut machine = ScriptMachine::new(program);
    let (verified, outcome) = irs::verify(
        &mut machine,
        Settings::default(),
        None,
        &mut Published::default(),
    )
    .unwrap();
    assert_eq!(outcome, Outcome::Done);
    let waits: Vec<_> = verified
        .inputs
        .iter()
        .map(|i| (i.inputs.clone(), i.demands.len()))
        .collect();
    assert_eq!(waits, [(vec![0], 0), (vec![1], 1)]);
}

#[test]
fn a_lost_update_is_kept_away_by_one_wait() {
    let program = lost_update();
    check(&program);
    let mut machine = ScriptMachine::new(program);
    let (verified, _) = irs::verify(
        &mut machine,
        Settings::default(),
        None,
        &mut Published::default(),
    )
    .unwrap();
    let relaxed = &verified.inputs[0];
    let wait = Demand {
        thread: ThreadId(2),
        source: ThreadId(1),
        event: 0,
        count: 2,
    };
    assert_eq!(relaxed.demands, Demands::new([wait]));
    assert_eq!(relaxed.kept[0].reason, Reason::Bug(0));
    let bug = &verified.bugs[0];
    assert_eq!(bug.failure.thread, ThreadId::MAIN);
}
