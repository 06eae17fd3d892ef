//! Python threads that wait for devices.

use defn_core::Result;
use defn_pjrt::Caller;

use crate::away;

/// The callbacks that the device runtime uses while it waits.
pub(super) struct Interpreter;

impl Caller for Interpreter {
    fn away(&self, body: &mut (dyn FnMut() + Send)) {
        away::leave(body);
    }

    fn may_be_interrupted(&self) -> bool {
        away::is_main_thread()
    }

    fn poll(&self) -> Result<()> {
        away::poll()
    }
}
