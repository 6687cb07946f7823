//! Themes: which colour each role has. Theme files name roles, never places on the screen.

use ratatui::style::{Color, Modifier, Style};
use toml_edit::DocumentMut;

use crate::line::Look;

macro_rules! roles {
    ($($(#[$meta:meta])* $name:ident = $key:literal),* $(,)?) => {
        /// What a piece of the screen means.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum Role { $($(#[$meta])* $name),* }

        impl Role {
            /// Every role with its name in theme files, in order of declaration.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$name, $key)),*];
        }
    };
}

roles! {
    /// Running text.
    #[default]
    Text = "text",
    /// Side information.
    Dim = "dim",
    /// The one colour that draws the eye.
    Accent = "accent",
    /// The user's words.
    User = "user",
    /// Frames.
    Border = "border",
    /// Headings.
    Heading = "heading",
    /// Code without highlighting.
    Code = "code",
    /// Links.
    Link = "link",
    /// Quoted text.
    Quote = "quote",
    /// Added lines.
    Added = "added",
    /// Removed lines.
    Removed = "removed",
    /// It went well.
    Ok = "ok",
    /// Look here.
    Warn = "warn",
    /// It went wrong.
    Error = "error",
    /// Mode: nothing may change.
    ModePlan = "mode.plan",
    /// Mode: ask before edits.
    ModeAsk = "mode.ask",
    /// Mode: edits without asking.
    ModeAuto = "mode.auto",
    /// Mode: everything without asking.
    ModeBypass = "mode.bypass",
    /// Keywords of a language.
    Keyword = "syntax.keyword",
    /// Strings.
    Literal = "syntax.string",
    /// Numbers and constants.
    Number = "syntax.number",
    /// Comments.
    Comment = "syntax.comment",
    /// Names of functions.
    Function = "syntax.function",
    /// Names of types.
    Type = "syntax.type",
}

const EMBEDDED: &[(&str, &str)] = &[
    ("loom-dark", include_str!("../../../themes/loom-dark.toml")),
    ("loom-light", include_str!("../../../themes/loom-light.toml")),
    ("loom-contrast", include_str!("../../../themes/loom-contrast.toml")),
];

/// Why a theme file was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ThemeError {
    /// It is no TOML.
    #[error("the theme is not valid TOML: {0}")]
    Syntax(#[from] toml_edit::TomlError),
    /// A value is no colour.
    #[error("theme key `{key}` must be a colour such as \"#7aa2f7\", not `{value}`")]
    Colour {
        /// The key.
        key: String,
        /// What stood there.
        value: String,
    },
    /// A key names no role.
    #[error("theme key `{0}` names no role")]
    UnknownRole(String),
    /// A role has no colour.
    #[error("the theme gives no colour for `{0}`")]
    Missing(&'static str),
}

/// One colour for each role, from the 256 that every terminal has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    name: String,
    background: u8,
    painted: bool,
    colours: Vec<u8>,
}

impl Theme {
    /// Names of the themes that are always there.
    pub fn names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, _)| *name)
    }

    /// One of the themes that are always there.
    pub fn embedded(name: &str) -> Option<Self> {
        let (name, text) = EMBEDDED.iter().find(|(known, _)| *known == name)?;
        Self::parse(name, text).ok()
    }

    /// Reads a theme file: `background`, `paint_background`, and a colour for every role.
    pub fn parse(name: &str, text: &str) -> Result<Self, ThemeError> {
        let document: DocumentMut = text.parse()?;
        let mut colours = vec![None; Role::ALL.len()];
        let mut background = 16;
        let mut painted = false;
        for (key, item) in document.iter() {
            match key {
                "background" => background = colour(key, item)?,
                "paint_background" => painted = item.as_bool().unwrap_or(false),
                key => {
                    let at = Role::ALL
                        .iter()
                        .position(|(_, name)| *name == key)
                        .ok_or_else(|| ThemeError::UnknownRole(key.to_owned()))?;
                    if let Some(slot) = colours.get_mut(at) {
                        *slot = Some(colour(key, item)?);
                    }
                }
            }
        }
        let colours = colours
            .into_iter()
            .zip(Role::ALL)
            .map(|(colour, (_, key))| colour.ok_or(ThemeError::Missing(key)))
            .collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), background, painted, colours })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The style of everything that is not said otherwise.
    pub(crate) fn base(&self) -> Style {
        let style = Style::new().fg(self.colour(Role::Text));
        if self.painted { style.bg(Color::Indexed(self.background)) } else { style }
    }

    /// The style of a look, in colour.
    pub(crate) fn style(&self, look: Look) -> Style {
        self.base().fg(self.colour(look.role)).add_modifier(look.added)
    }

    fn colour(&self, role: Role) -> Color {
        Color::Indexed(self.colours.get(role as usize).copied().unwrap_or(7))
    }
}

impl Default for Theme {
    fn default() -> Self {
        Self::embedded("loom-dark").unwrap_or(Self {
            name: "plain".to_owned(),
            background: 16,
            painted: false,
            colours: vec![7; Role::ALL.len()],
        })
    }
}

/// The style of a look where no colour is wanted.
pub(crate) fn colourless(look: Look) -> Style {
    let own = match look.role {
        Role::Accent
        | Role::User
        | Role::Heading
        | Role::Warn
        | Role::Error
        | Role::Keyword
        | Role::ModeBypass => Modifier::BOLD,
        Role::Dim | Role::Border | Role::Comment | Role::Quote => Modifier::DIM,
        Role::Link => Modifier::UNDERLINED,
        _ => Modifier::empty(),
    };
    Style::new().add_modifier(own | look.added)
}

fn colour(key: &str, item: &toml_edit::Item) -> Result<u8, ThemeError> {
    let wrong =
        || ThemeError::Colour { key: key.to_owned(), value: item.to_string().trim().to_owned() };
    let hex = item.as_str().and_then(|text| text.strip_prefix('#')).ok_or_else(wrong)?;
    if hex.len() != 6 || !hex.is_ascii() {
        return Err(wrong());
    }
    let value = u32::from_str_radix(hex, 16).map_err(|_| wrong())?;
    Ok(nearest([(value >> 16) as u8, (value >> 8) as u8, value as u8]))
}

/// The nearest of the fixed colours 16 to 255.
fn nearest(wanted: [u8; 3]) -> u8 {
    (16..=255u8).min_by_key(|index| distance(rgb(*index), wanted)).unwrap_or(16)
}

fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
}

/// Red, green and blue of one of the fixed colours 16 to 255.
fn rgb(index: u8) -> [u8; 3] {
    if index >= 232 {
        return [8 + 10 * (index - 232); 3];
    }
    let cube = index.saturating_sub(16);
    [cube / 36, cube / 6 % 6, cube % 6].map(|step| if step == 0 { 0 } else { 55 + 40 * step })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: [u8; 3]) -> f64 {
        let [r, g, b] = colour.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn contrast(a: u8, b: u8) -> f64 {
        let (a, b) = (luminance(rgb(a)) + 0.05, luminance(rgb(b)) + 0.05);
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn every_role_of_every_theme_can_be_read() {
        for name in Theme::names() {
            let theme = Theme::embedded(name).unwrap();
            for (role, key) in Role::ALL {
                let Color::Indexed(colour) = theme.colour(*role) else { panic!("{key}") };
                let ratio = contrast(colour, theme.background);
                let least = if *role == Role::Border { 3.0 } else { 4.5 };
                assert!(ratio >= least, "{name}: {key} has contrast {ratio:.2}");
            }
        }
    }

    #[test]
    fn colours_map_to_the_nearest_of_the_palette() {
        assert_eq!(nearest([0, 0, 0]), 16);
        assert_eq!(nearest([255, 255, 255]), 231);
        assert_eq!(nearest([95, 135, 175]), 67);
        assert_eq!(nearest([30, 30, 30]), 234);
    }

    #[test]
    fn a_theme_without_a_role_or_with_an_unknown_one_is_refused() {
        assert!(matches!(Theme::parse("x", "text = \"#ffffff\""), Err(ThemeError::Missing("dim"))));
        assert!(matches!(Theme::parse("x", "wall = \"#ffffff\""), Err(ThemeError::UnknownRole(_))));
        assert!(matches!(Theme::parse("x", "text = \"red\""), Err(ThemeError::Colour { .. })));
    }
}
