//! What a person can choose for a session: its mode and its model.

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOption, SessionMode, SessionModeState,
};
use loon_api::{Command, ErrorCode, ErrorInfo, Mode};

/// The modes by the names they have everywhere in Loom, the one that asks most first.
const MODES: [(Mode, &str, &str); 4] = [
    (Mode::Default, "default", "Reading is allowed, everything else asks."),
    (Mode::Auto, "auto", "Writing inside the folder is allowed too; shell and network ask."),
    (Mode::Plan, "plan", "Nothing may change."),
    (Mode::Bypass, "bypass", "Everything is allowed; deny and ask rules still hold."),
];

const MODE: &str = "mode";
const MODEL: &str = "model";

/// Where the choices of a session stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// The permission mode.
    pub(super) mode: Mode,
    /// `provider/model`, if there is one.
    pub(super) model: Option<String>,
    /// All that can be chosen.
    pub(super) models: Vec<String>,
}

/// The name of a mode.
pub(super) fn mode_name(mode: Mode) -> &'static str {
    MODES.iter().find(|(known, _, _)| *known == mode).map_or("default", |(_, name, _)| name)
}

/// The mode of a name.
pub(super) fn mode_named(name: &str) -> Result<Mode, ErrorInfo> {
    let found = MODES.iter().find(|(_, known, _)| *known == name);
    found.map(|(mode, _, _)| *mode).ok_or_else(|| {
        wrong(format!("There is no mode {name}; there are default, auto, plan and bypass."))
    })
}

fn wrong(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::Invalid, message)
}

impl Options {
    /// The mode and what else it could be.
    pub(super) fn modes(&self) -> SessionModeState {
        let modes = MODES
            .iter()
            .map(|(_, name, about)| SessionMode::new(*name, *name).description((*about).to_owned()))
            .collect();
        SessionModeState::new(mode_name(self.mode), modes)
    }

    /// Mode and model as options.
    pub(super) fn config(&self) -> Vec<SessionConfigOption> {
        let modes: Vec<SessionConfigSelectOption> = MODES
            .iter()
            .map(|(_, name, about)| {
                SessionConfigSelectOption::new(*name, *name).description((*about).to_owned())
            })
            .collect();
        let mode = SessionConfigOption::select(MODE, "Mode", mode_name(self.mode), modes)
            .category(SessionConfigOptionCategory::Mode);
        let model = self.model.as_ref().map(|current| {
            let known = self.models.contains(current);
            let others = self.models.iter().map(String::as_str);
            let names = (!known).then_some(current.as_str()).into_iter().chain(others);
            let models: Vec<SessionConfigSelectOption> =
                names.map(|name| SessionConfigSelectOption::new(name.to_owned(), name)).collect();
            SessionConfigOption::select(MODEL, "Model", current.clone(), models)
                .category(SessionConfigOptionCategory::Model)
        });
        std::iter::once(mode).chain(model).collect()
    }

    /// The command that makes a choice.
    pub(super) fn choose(
        &self,
        option: &str,
        value: &SessionConfigOptionValue,
    ) -> Result<Command, ErrorInfo> {
        let Some(value) = value.as_value_id() else {
            return Err(wrong(format!("The option {option} takes a name.")));
        };
        let value = value.0.as_ref();
        match option {
            MODE => Ok(Command::SetMode { mode: mode_named(value)? }),
            MODEL if self.has_model(value) => Ok(Command::SetModel { model: value.to_owned() }),
            MODEL => Err(wrong(format!("The settings have no model {value}."))
                .hint("`loon models list` names the models.")),
            _ => Err(wrong(format!("There is no option {option}; there are mode and model."))),
        }
    }

    fn has_model(&self, name: &str) -> bool {
        self.model.as_deref() == Some(name) || self.models.iter().any(|known| known == name)
    }

    /// True if a choice was made as this command asked.
    pub(super) fn shows(&self, command: &Command) -> bool {
        match command {
            Command::SetMode { mode } => self.mode == *mode,
            Command::SetModel { model } => self.model.as_ref() == Some(model),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn options() -> Options {
        let models = vec!["lab/a".to_owned(), "lab/b".to_owned()];
        Options { mode: Mode::Auto, model: Some("lab/x".to_owned()), models }
    }

    #[test]
    fn the_model_in_force_is_always_among_the_choices() {
        let told = serde_json::to_value(options().config()).unwrap();
        assert_eq!(told[0]["currentValue"], "auto");
        assert_eq!(told[0]["category"], "mode");
        assert_eq!(told[1]["currentValue"], "lab/x");
        assert_eq!(
            told[1]["options"],
            json!([{"value": "lab/x", "name": "lab/x"}, {"value": "lab/a", "name": "lab/a"},
                {"value": "lab/b", "name": "lab/b"}])
        );
        let none = Options { model: None, ..options() };
        assert_eq!(none.config().len(), 1);
    }

    #[test]
    fn only_what_is_there_can_be_chosen() {
        let choose = |option: &str, value: &str| options().choose(option, &value.into());
        let model = "lab/b".to_owned();
        assert_eq!(choose("model", "lab/b"), Ok(Command::SetModel { model }));
        assert_eq!(choose("mode", "bypass"), Ok(Command::SetMode { mode: Mode::Bypass }));
        for (option, value) in [("model", "lab/c"), ("mode", "yolo"), ("effort", "high")] {
            assert_eq!(choose(option, value).unwrap_err().code, ErrorCode::Invalid);
        }
        assert!(options().choose("mode", &true.into()).is_err());
    }

    #[test]
    fn every_mode_has_a_name_of_its_own() {
        for (mode, name, _) in MODES {
            assert_eq!((mode_name(mode), mode_named(name)), (name, Ok(mode)));
        }
    }
}
