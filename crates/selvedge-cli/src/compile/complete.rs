//! Completes compiled files: traps before what cannot be checked, and announcements that the compiler
//! left out.

use std::fs;

use object::File;

use super::toolchain::{Toolchain, read_assembly};
use super::{Object, announce, traps};
use crate::problem::Problem;
use crate::scan::{self, Finding, Omission, Scanned, Trap};

impl Toolchain {
    /// Puts into a compiled file what its inspection asks for: traps before what cannot be checked,
    /// and announcements. Tells what else turned out to be impossible to check, and has a trap.
    pub(super) fn complete(
        &self,
        object: &Object,
        scanned: Scanned,
    ) -> Result<Vec<Finding>, Problem> {
        /// Traps may be needed once more after announcements failed.
        const ROUNDS: usize = 4;
        let mut scanned = scanned;
        let mut more = Vec::new();
        for round in 0..ROUNDS {
            let placed = |finding: &Finding| {
                matches!(
                    finding.trap,
                    Trap::Block(_) | Trap::Entry(_) | Trap::Nothing
                )
            };
            scanned.findings.retain(placed);
            if !scanned.findings.is_empty() {
                self.trap(object, &scanned.findings, round)?;
                scanned = scan::rescan(object, false)?;
                more.extend(scanned.findings.iter().cloned());
            } else if scanned.omissions.is_empty() {
                return Ok(more);
            } else {
                scanned = self.announce(object, std::mem::take(&mut scanned.omissions))?;
                more.extend(scanned.findings.iter().cloned());
            }
        }
        Err(unannounceable(object))
    }

    /// Puts traps before what cannot be checked.
    fn trap(&self, object: &Object, findings: &[Finding], round: usize) -> Result<(), Problem> {
        let failed = |error| Problem::internal(format!("{}: {error}", object.text.display()));
        let text = read_assembly(&object.text).map_err(failed)?;
        let trapped = traps::write(&text, findings, round);
        let trapped = trapped.map_or_else(|| scan::refuse(findings.iter()).map(|()| text), Ok)?;
        self.reassemble(object, &trapped)
    }

    /// Announces what the compiler did not, until the scan is content or cannot be helped.
    fn announce(&self, object: &Object, omissions: Vec<Omission>) -> Result<Scanned, Problem> {
        /// Code that is put in may make the scan doubt more; it never took more than three rounds.
        const ROUNDS: usize = 6;
        let failed = |error| Problem::internal(format!("{}: {error}", object.text.display()));
        let mut text = read_assembly(&object.text).map_err(failed)?;
        let mut omissions = omissions;
        let mut counting = true;
        for round in 0..ROUNDS {
            let places = match counting {
                true => announce::count(&text, &omissions),
                false => self.find_lines(object, &text, &omissions)?,
            };
            let written = places.and_then(|places| announce::write(&text, &places, round));
            if let Some(written) = written {
                self.reassemble(object, &written)?;
                let left = scan::rescan(object, round + 1 == ROUNDS)?;
                if left.omissions.is_empty() && (left.findings.is_empty() || !counting) {
                    return Ok(left);
                }
                if !counting {
                    (text, omissions) = (written, left.omissions);
                }
            } else if !counting {
                return Err(unannounceable(object));
            }
            counting = false;
        }
        Err(unannounceable(object))
    }

    /// The lines of the accesses in `omissions`, told by labels.
    fn find_lines<'a>(
        &self,
        object: &Object,
        text: &str,
        omissions: &'a [Omission],
    ) -> Result<Option<announce::Places<'a>>, Problem> {
        let labelled = announce::label(text, omissions);
        self.reassemble(object, &labelled.text)?;
        let bytes = fs::read(&object.path).unwrap_or_default();
        let file = File::parse(&*bytes).map_err(|_| unannounceable(object))?;
        Ok(labelled.find(&file, omissions))
    }

    fn reassemble(&self, object: &Object, text: &str) -> Result<(), Problem> {
        fs::write(&object.text, text)
            .map_err(|error| Problem::internal(format!("{}: {error}", object.text.display())))?;
        let done = self.assemble(object.language, &object.text, &object.path)?;
        match done.status.success() {
            true => Ok(()),
            false => Err(unannounceable(object).words(done.words)),
        }
    }
}

/// A file whose accesses are not announced and cannot be.
fn unannounceable(object: &Object) -> Problem {
    let name = object.source.display();
    Problem::request(format!(
        "cannot check this program: {name} has accesses that the compiler does not announce"
    ))
    .help("leave out -masm=intel, -m… and -O… flags, or use another compiler (--cc)")
}
