//! `loon acp`.

use crate::acp;
use crate::args::AcpArgs;
use crate::failure::Failure;

/// Serves an editor until it goes.
pub(super) fn run(args: AcpArgs) -> Result<u8, Failure> {
    let runtime = super::runtime()?;
    let status = runtime.block_on(acp::serve(args));
    crate::commands::leave(runtime);
    status
}
