//! `loon trust`: lets the settings of this folder's repository loosen things, or takes that back.

use std::fmt::Write as _;

use loon_config::files;
use loon_config::trust::Trust;

use crate::args::TrustArgs;
use crate::failure::Failure;
use crate::wiring::Setup;

/// Remembers or forgets the current folder.
pub(super) fn run(args: &TrustArgs) -> Result<u8, Failure> {
    let setup = Setup::load_paths(None, &[])?;
    let folder = &setup.root;
    let mut trust = Trust::open(&setup.paths.trust_file())?;
    if args.revoke {
        trust.revoke(folder)?;
        return super::print(&format!("{} is no longer trusted.\n", folder.display()));
    }
    // Settings that cannot be read are no settings to trust.
    let before = setup.load_as(setup.trusted)?;
    setup.load_as(true)?;
    trust.trust(folder, &files::project_state(&setup.files))?;
    let mut said =
        format!("{} is trusted: its .loon settings can allow things now.\n", folder.display());
    for ignored in before.untrusted.iter().filter(|ignored| ignored.needs_trust) {
        let _ = writeln!(said, "  {}: {} has an effect now", ignored.origin, ignored.key);
    }
    super::print(&said)
}
