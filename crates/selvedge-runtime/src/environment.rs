//! The arguments and the environment of `main`. They lie at the top of its stack, where the system puts them:
//! pointers to the arguments, pointers to the environment, and then all strings.

use std::ffi::CStr;

use crate::arena::pointer;
use crate::settings::Settings;

/// How `main` is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) count: usize,
    pub(crate) arguments: usize,
    pub(crate) environment: usize,
}

/// The program's name, the arguments, and the environment.
fn strings(settings: &Settings) -> impl Iterator<Item = &CStr> {
    let given = settings.arguments.iter().chain(&settings.environment);
    std::iter::once(c"program").chain(given.map(|string| &**string))
}

impl Call {
    fn new(settings: &Settings, stack_top: usize) -> Call {
        let count = 1 + settings.arguments.len();
        let words = count + settings.environment.len() + 2;
        let bytes: usize = strings(settings)
            .map(|string| string.count_bytes() + 1)
            .sum();
        let arguments = (stack_top - 8 * words - bytes) & !63;
        Call {
            count,
            arguments,
            environment: arguments + 8 * (count + 1),
        }
    }

    /// Where each string is.
    fn places<'a>(&self, settings: &'a Settings) -> impl Iterator<Item = (usize, &'a CStr)> {
        let mut next = self.environment + 8 * (settings.environment.len() + 1);
        strings(settings).map(move |string| {
            let place = next;
            next += string.count_bytes() + 1;
            (place, string)
        })
    }
}

/// Whether there is room for it on the stack.
pub(crate) fn fits(settings: &Settings) -> bool {
    let top = usize::MAX / 2;
    top - Call::new(settings, top).arguments <= settings.stack_size / 4
}

/// Puts what `main` is called with on its stack, which nothing runs on.
pub(crate) fn write(settings: &Settings, stack_top: usize) -> Call {
    let call = Call::new(settings, stack_top);
    let put = |at: usize, word: usize| {
        // SAFETY: within a committed stack that nothing runs on.
        unsafe { pointer::<usize>(at).write(word) }
    };
    for (number, (place, string)) in call.places(settings).enumerate() {
        // The arguments are followed by a null pointer.
        let skipped = usize::from(number >= call.count);
        put(call.arguments + 8 * (number + skipped), place);
        let bytes = string.to_bytes_with_nul();
        // SAFETY: as above; `Call::new` made room for it.
        unsafe { pointer::<u8>(place).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    put(call.environment - 8, 0);
    put(call.environment + 8 * settings.environment.len(), 0);
    call
}

/// Where the pointers to all variables are.
pub(crate) fn variables(settings: &Settings, stack_top: usize) -> usize {
    Call::new(settings, stack_top).environment
}

/// Where the value of the variable `name` is.
pub(crate) fn find(settings: &Settings, stack_top: usize, name: &[u8]) -> Option<usize> {
    let call = Call::new(settings, stack_top);
    let variables = call.places(settings).skip(call.count);
    let value = |(place, variable): (usize, &CStr)| {
        let value = variable.to_bytes().strip_prefix(name)?.strip_prefix(b"=")?;
        Some(place + variable.count_bytes() - value.len())
    };
    variables.filter_map(value).next()
}
