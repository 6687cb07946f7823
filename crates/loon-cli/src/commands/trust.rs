//! `loon trust`: lets the settings of this folder's repository loosen things, or takes that back.

use loon_config::trust::Trust;

use crate::args::TrustArgs;
use crate::failure::Failure;
use crate::paths::{Paths, current_folder};

/// Remembers or forgets the current folder.
pub(super) fn run(args: &TrustArgs) -> Result<u8, Failure> {
    let folder = current_folder()?;
    let file = Paths::from_environment()?.trust_file();
    let mut trust = Trust::open(&file).map_err(|error| Failure::from(error.info()))?;
    let changed = if args.revoke { trust.revoke(&folder) } else { trust.trust(&folder) };
    changed.map_err(|error| Failure::from(error.info()))?;
    let folder = folder.display();
    super::print(&if args.revoke {
        format!("{folder} is no longer trusted.\n")
    } else {
        format!("{folder} is trusted: its .loon settings can allow things now.\n")
    })
}
