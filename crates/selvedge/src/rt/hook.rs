//! Panics in a model are told by the report, not as they happen: a search may meet the same one
//! many times.

use std::any::Any;
use std::sync::Once;

use super::engine;
use super::memory::{self, Owner};

/// The message of a panic.
pub(super) fn message(payload: &dyn Any) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Keeps the messages of panics in models; others go on to the hook that was installed before.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !engine::on_fiber() {
                return before(info);
            }
            let owner = memory::allocate_for(Owner::Checker);
            match engine::records_calls() {
                true => engine::record_calls(),
                false if engine::replaying() => before(info),
                false => {}
            }
            let message = message(info.payload());
            let place = info
                .location()
                .map(|place| (place.file().to_owned(), place.line(), place.column()));
            // `std` aborts when the hook returns if a destructor panics while its thread unwinds,
            // or a panic comes to a function that cannot unwind. It tells so by no other means.
            let aborts = format!("{info:?}").contains("can_unwind: false");
            engine::host(|state| match aborts {
                true => state.cannot_unwind(&message, place),
                false => state.panics(message, place),
            });
            memory::allocate_for(owner);
        }));
    });
}
