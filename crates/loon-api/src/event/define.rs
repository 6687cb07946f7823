//! The macros that make the types of events and the enum over them.

use serde::ser::SerializeMap;

use crate::budget::{Bounds, ReachedBound};
use crate::context::Compaction;
use crate::error::ErrorInfo;
use crate::id::{ApprovalId, EffectKey, ExecutionId, ItemId};
use crate::item::Item;
use crate::money::{Cost, Usage};
use crate::permission::{Approval, Mode};
use crate::record::{RecordChange, WorkingRecord};
use crate::review::Review;
use crate::session::{ExecutionKind, Outcome, SessionHolder, TurnStatus};
use crate::subagent::{SubagentStatus, SubagentSummary};
use crate::time::At;

use super::parts::{
    CircuitState, Decision, DeltaKind, EffectKind, EffectStatus, NoticeLevel, SessionState,
};

/// What every type of event has.
pub(super) trait EventType {
    /// The event's `type`.
    const KIND: &'static str;

    /// Writes the members that say something.
    fn serialize_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// Makes the types of some events.
macro_rules! event_types {
    ($( $(#[$meta:meta])* $name:ident = $kind:literal { $( $(#[$fmeta:meta])* $field:ident : $ty:ty, )* } )*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
            pub struct $name { $( $(#[$fmeta])* pub $field: $ty, )* }

            impl From<$name> for AgentEvent {
                fn from(event: $name) -> Self {
                    Self::$name(event)
                }
            }

            impl EventType for $name {
                const KIND: &'static str = $kind;

                fn serialize_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                    let $name { $($field),* } = self;
                    $( if let Some(value) = Field::present($field) {
                        map.serialize_entry(stringify!($field), value)?;
                    } )*
                    Ok(())
                }
            }
        )*
    };
}

/// Makes the enum over the types of events.
macro_rules! agent_event {
    ($($name:ident,)*) => {
        /// What happened.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AgentEvent {
            $( #[doc = concat!("See [`", stringify!($name), "`].")] $name($name), )*
            /// An event of a type this version does not know. Kept in the journal, passed over.
            Unknown {
                /// Its `type`.
                kind: String,
            },
        }

        impl AgentEvent {
            /// The `type` of every event this version knows.
            pub const KINDS: &'static [&'static str] = &[$($name::KIND),*];

            /// The event's `type`.
            pub fn kind(&self) -> &str {
                match self {
                    $( Self::$name(_) => $name::KIND, )*
                    Self::Unknown { kind } => kind,
                }
            }

            pub(super) fn parse(kind: &str, line: &str) -> Result<Self, serde_json::Error> {
                match kind {
                    $( $name::KIND => serde_json::from_str::<$name>(line).map(Self::$name), )*
                    other => Ok(Self::Unknown { kind: other.to_owned() }),
                }
            }

            pub(super) fn serialize_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $( Self::$name(event) => event.serialize_fields(map), )*
                    Self::Unknown { .. } => Ok(()),
                }
            }

            /// JSON Schemas of all events, as `(type, schema)`.
            pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$( ($name::KIND, generator.subschema_for::<$name>()) ),*]
            }
        }
    };
}

/// Fields that are left out of the line when they say nothing.
pub(super) trait Field {
    fn present(&self) -> Option<&Self>;
}

macro_rules! always_present {
    ($($ty:ty),* $(,)?) => { $( impl Field for $ty {
        fn present(&self) -> Option<&Self> { Some(self) }
    } )* };
}

always_present! {
    String, u32, u64, f64, bool, Mode, ExecutionKind, TurnStatus, Outcome, Item, ItemId, EffectKey,
    ExecutionId, ApprovalId, Approval, Usage, Cost, EffectKind, EffectStatus, DeltaKind, Decision,
    NoticeLevel, ErrorInfo, SessionState, RecordChange, SubagentStatus, ReachedBound, SessionHolder, CircuitState, Compaction, At, serde_json::Value,
    Review, SubagentSummary,
}

impl Field for Bounds {
    fn present(&self) -> Option<&Self> {
        (*self != Self::default()).then_some(self)
    }
}

impl Field for WorkingRecord {
    fn present(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}

impl<T> Field for Option<T> {
    fn present(&self) -> Option<&Self> {
        self.is_some().then_some(self)
    }
}

impl<T> Field for Vec<T> {
    fn present(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}
