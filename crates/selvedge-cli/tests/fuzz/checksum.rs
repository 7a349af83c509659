//! Programs with one thread that compute a checksum: natively they print it, and under Selvedge they
//! assert that it is `EXPECT` and, in another execution, that it is not.

use std::process::Command;

use crate::common::{Sandbox, compilers};
use crate::tally::{End, Verdict};

/// The file that every program includes first.
const EXPECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/expect.h");

/// How a program is built and checked.
pub(crate) struct Setting {
    compiler: &'static str,
    level: &'static str,
    plain: &'static str,
    /// Where its headers are.
    include: String,
}

impl Setting {
    /// How many there are.
    pub(crate) const COUNT: u64 = 8;

    /// Each number has one; eight numbers in a row have them all.
    pub(crate) fn of(number: u64, headers: &str) -> Setting {
        let compilers = compilers();
        let pick = |bit: u64| (number >> bit) as usize;
        Setting {
            compiler: compilers[pick(0) % compilers.len()],
            level: ["-O0", "-O2"][pick(1) % 2],
            plain: ["race", "sc"][pick(2) % 2],
            include: format!("-I{headers}"),
        }
    }

    /// The arguments that check `program`.
    pub(crate) fn arguments(&self, program: &str) -> Vec<String> {
        let Setting {
            compiler,
            level,
            plain,
            include,
        } = self;
        let options = "--keep-going --no-advice --stack-size 8M --timeout 10 --watchdog 20";
        let all = format!(
            "verify {program} {options} --plain {plain} --cc {compiler} -- {level} -w \
             {include} -include {EXPECT}"
        );
        all.split(' ').map(str::to_owned).collect()
    }

    /// The checksum that the program prints, or `None` if it does not end soon.
    fn native(&self, sandbox: &Sandbox) -> Option<u32> {
        let mut build = Command::new(self.compiler);
        build.args([self.level, "-w", &self.include, "-include", EXPECT, "-o"]);
        build.args([sandbox.path("native"), sandbox.path("program.c")]);
        assert!(build.status().expect("the compiler runs").success());
        let output = Command::new(sandbox.path("native")).output();
        let text = String::from_utf8(output.expect("it runs").stdout).expect("a line of text");
        let digits = text.trim().strip_prefix("checksum = ")?;
        Some(u32::from_str_radix(digits, 16).expect("a checksum"))
    }

    /// Selvedge's verdict on the assertions that the checksum is `expect` and that it is not.
    fn check(&self, sandbox: &Sandbox, expect: u32) -> Verdict {
        let mut arguments = self.arguments("program.c");
        arguments.insert(1, "--format=json".to_owned());
        arguments.push(format!("-DEXPECT={expect:#x}u"));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Verdict::of(&sandbox.run(&arguments))
    }

    /// Compares the `program.c` of a sandbox with its native run, and keeps a copy at `kept` if that
    /// goes wrong.
    pub(crate) fn compare(&self, sandbox: &Sandbox, kept: &str) -> End {
        let Some(sum) = self.native(sandbox) else {
            return End::Slow("natively");
        };
        let end = self.judge(sandbox, sum);
        if !matches!(end, End::Identical | End::Slow(_)) {
            let text = std::fs::read_to_string(sandbox.path("program.c")).expect("a program");
            let text = format!("#ifndef EXPECT\n#define EXPECT {sum:#x}u\n#endif\n{text}");
            std::fs::write(kept, text).expect("the program is kept");
        }
        end
    }

    /// Selvedge must report the false assertion and nothing else.
    fn judge(&self, sandbox: &Sandbox, sum: u32) -> End {
        match self.check(sandbox, sum) {
            Verdict::Slow => End::Slow("under Selvedge"),
            Verdict::Refused(why) => End::Refused(why),
            Verdict::Verified => End::Wrong("a false assertion is not reported".to_owned()),
            Verdict::Bugs(bugs) => {
                let is_false = |(kind, message): &&(String, String)| {
                    kind == "assertion" && message.ends_with(" != EXPECT")
                };
                match bugs.iter().find(|bug| !is_false(bug)) {
                    Some((kind, message)) => {
                        End::Wrong(format!("{kind} where there is none: {message}"))
                    }
                    None => End::Identical,
                }
            }
        }
    }
}
