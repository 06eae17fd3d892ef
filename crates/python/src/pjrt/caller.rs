//! Python threads that wait for devices.

use defn_core::Result;
use defn_pjrt::Caller;

use crate::gil;

/// The callbacks that the device runtime uses while it waits.
pub(super) struct Interpreter;

impl Caller for Interpreter {
    fn without_lock(&self, body: &mut (dyn FnMut() + Send)) {
        gil::release(body);
    }

    fn may_be_interrupted(&self) -> bool {
        gil::is_main_thread()
    }

    fn poll(&self) -> Result<()> {
        gil::poll()
    }
}
