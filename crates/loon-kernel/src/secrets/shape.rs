//! The shapes of credentials that are told by their form alone: a prefix that nothing else has, and a
//! length. Lists of issuers' own documentation; where only a context would tell, there is no shape.

/// Which characters a run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// `0-9`
    Digit,
    /// `0-9 a-f A-F`
    Hex,
    /// `A-Z 2-7`
    Base32,
    /// `A-Z a-z 0-9`
    Alnum,
    /// `A-Z a-z 0-9 _ -`
    Word,
    /// `A-Z a-z 0-9 + / =`
    Base64,
    /// What values after `password=` are made of.
    Value,
    /// Userinfo of a URL.
    User,
}

impl Class {
    pub(super) fn has(self, byte: u8) -> bool {
        let alnum = byte.is_ascii_alphanumeric();
        match self {
            Self::Digit => byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Base32 => byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7'),
            Self::Alnum => alnum,
            Self::Word => alnum || matches!(byte, b'_' | b'-'),
            Self::Base64 => alnum || matches!(byte, b'+' | b'/' | b'='),
            Self::Value => {
                alnum
                    || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~' | b'!' | b'%')
            }
            Self::User => {
                byte.is_ascii_graphic()
                    && !matches!(
                        byte,
                        b':' | b'/'
                            | b'@'
                            | b'"'
                            | b'\''
                            | b'<'
                            | b'>'
                            | b'\\'
                            | b'`'
                            | b'{'
                            | b'}'
                            | b'$'
                            | b'*'
                            | b'#'
                            | b'?'
                            | b'('
                            | b')'
                            | b'['
                            | b']'
                    )
            }
        }
    }
}

/// A piece of a shape after its prefix.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// So many characters of a class, as many as there are; no more may follow.
    Run(Class, usize, usize),
    /// At least so many; whatever follows of the class belongs to it. Only at the end.
    Open(Class, usize),
    /// Exactly this.
    Lit(&'static str),
}

/// A token that is told by its form.
#[derive(Debug)]
pub(super) struct Shape {
    /// What its mask says.
    pub(super) label: &'static str,
    /// How it begins; no letter or digit stands before it.
    pub(super) prefix: &'static str,
    /// What follows.
    pub(super) parts: &'static [Part],
}

use Class::{Alnum, Base32, Base64, Digit, Hex, Word};
use Part::{Lit, Open, Run};

macro_rules! shapes {
    ($($label:literal: $prefix:literal $($part:expr),+;)*) => {
        &[$(Shape { label: $label, prefix: $prefix, parts: &[$($part),+] }),*]
    };
}

/// All shapes. Of two that fit the same text the earlier counts.
pub(super) const SHAPES: &[Shape] = shapes! {
    // Clouds.
    "aws access key id": "AKIA" Run(Base32, 16, 16);
    "aws access key id": "ASIA" Run(Base32, 16, 16);
    "google api key": "AIza" Run(Word, 35, 35);
    "google oauth token": "ya29." Open(Word, 40);
    "google client secret": "GOCSPX-" Run(Word, 28, 28);
    "azure storage key": "AccountKey=" Run(Base64, 88, 88);
    "digitalocean token": "dop_v1_" Run(Hex, 64, 64);
    "digitalocean token": "doo_v1_" Run(Hex, 64, 64);
    "databricks token": "dapi" Run(Hex, 32, 32);
    "heroku key": "HRKU-" Open(Word, 36);
    "supabase token": "sbp_" Run(Hex, 40, 40);
    "planetscale token": "pscale_tkn_" Open(Word, 32);
    "terraform token": "atlasv1." Open(Word, 60);
    "pulumi token": "pul-" Run(Hex, 40, 40);
    "vault token": "hvs." Open(Word, 80);
    "doppler token": "dp.pt." Run(Alnum, 43, 43);
    "age key": "AGE-SECRET-KEY-1" Run(Alnum, 58, 58);
    // Providers of models.
    "anthropic key": "sk-ant-" Open(Word, 32);
    "openrouter key": "sk-or-v1-" Run(Hex, 64, 64);
    "openai key": "sk-proj-" Open(Word, 40);
    "openai key": "sk-svcacct-" Open(Word, 40);
    "openai key": "sk-admin-" Open(Word, 40);
    "model provider key": "sk-" Open(Alnum, 32);
    "groq key": "gsk_" Run(Alnum, 52, 52);
    "xai key": "xai-" Run(Alnum, 80, 80);
    "hugging face token": "hf_" Run(Alnum, 34, 34);
    "replicate token": "r8_" Run(Alnum, 37, 37);
    "perplexity key": "pplx-" Run(Alnum, 48, 56);
    "nvidia key": "nvapi-" Open(Word, 60);
    "cerebras key": "csk-" Run(Alnum, 48, 48);
    "context7 key": "ctx7sk-" Open(Word, 36);
    // Version control, packages, trackers.
    "github token": "ghp_" Open(Alnum, 36);
    "github token": "gho_" Open(Alnum, 36);
    "github token": "ghu_" Open(Alnum, 36);
    "github token": "ghs_" Open(Alnum, 36);
    "github token": "ghr_" Open(Alnum, 36);
    "github token": "github_pat_" Open(Word, 82);
    "gitlab token": "glpat-" Open(Word, 20);
    "gitlab token": "gldt-" Open(Word, 20);
    "gitlab token": "glrt-" Open(Word, 20);
    "gitlab token": "glptt-" Run(Hex, 40, 40);
    "gitlab token": "glcbt-" Open(Word, 20);
    "bitbucket token": "ATBB" Run(Alnum, 32, 32);
    "atlassian token": "ATATT3" Open(Word, 100);
    "npm token": "npm_" Run(Alnum, 36, 36);
    "pypi token": "pypi-AgE" Open(Word, 60);
    "crates.io token": "cio" Run(Alnum, 32, 32);
    "rubygems key": "rubygems_" Run(Hex, 48, 48);
    "docker token": "dckr_pat_" Open(Word, 27);
    "linear key": "lin_api_" Run(Alnum, 40, 40);
    "notion token": "ntn_" Run(Alnum, 46, 46);
    "figma token": "figd_" Open(Word, 38);
    "postman key": "PMAK-" Run(Hex, 24, 24), Lit("-"), Run(Hex, 34, 34);
    "sentry token": "sntrys_" Open(Word, 60);
    "grafana token": "glsa_" Run(Alnum, 32, 32), Lit("_"), Run(Hex, 8, 8);
    "netlify token": "nfp_" Run(Alnum, 36, 40);
    // Chat and mail.
    "slack token": "xoxb-" Open(Word, 24);
    "slack token": "xoxp-" Open(Word, 24);
    "slack token": "xoxa-" Open(Word, 24);
    "slack token": "xoxr-" Open(Word, 24);
    "slack token": "xoxs-" Open(Word, 24);
    "slack token": "xapp-" Run(Digit, 1, 1), Lit("-"), Open(Word, 40);
    "slack webhook": "hooks.slack.com/services/T" Run(Alnum, 8, 12), Lit("/B"), Run(Alnum, 8, 12),
        Lit("/"), Open(Alnum, 20);
    "discord webhook": "discord.com/api/webhooks/" Run(Digit, 17, 20), Lit("/"), Open(Word, 60);
    "sendgrid key": "SG." Run(Word, 22, 22), Lit("."), Run(Word, 43, 43);
    "mailgun key": "key-" Run(Hex, 32, 32);
    "twilio key": "SK" Run(Hex, 32, 32);
    // Payment.
    "stripe key": "sk_live_" Open(Alnum, 24);
    "stripe key": "sk_test_" Open(Alnum, 24);
    "stripe key": "rk_live_" Open(Alnum, 24);
    "stripe key": "rk_test_" Open(Alnum, 24);
    "stripe webhook secret": "whsec_" Open(Base64, 32);
    "square token": "sq0atp-" Run(Word, 22, 22);
    "square token": "sq0csp-" Run(Word, 43, 43);
    "shopify token": "shpat_" Run(Hex, 32, 32);
    "shopify token": "shpss_" Run(Hex, 32, 32);
    "shopify token": "shpca_" Run(Hex, 32, 32);
    "shopify token": "shppa_" Run(Hex, 32, 32);
    // Everywhere.
    "json web token": "eyJ" Run(Word, 10, 1024), Lit(".eyJ"), Run(Word, 10, 8192), Lit("."),
        Open(Word, 16);
};

/// Masks of what has no prefix of its own.
pub(super) const PRIVATE_KEY: &str = "private key";
pub(super) const PASSWORD: &str = "password";
pub(super) const CREDENTIAL: &str = "credential";
pub(super) const AUTHORIZATION: &str = "authorization";

/// Names after which `=` or `:` and a value is a credential, in lower case.
pub(super) const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "authtoken",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "accesskey",
    "secret_key",
    "secretkey",
    "private_key",
    "auth_key",
];

/// Words that a credential made by a machine does not have.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "placeholder",
    "redacted",
    "changeme",
    "change-me",
    "change_me",
    "your-",
    "your_",
    "yourkey",
    "dummy",
    "xxxx",
    "1234567890",
    "abcdefgh",
    "replace",
];

/// True if a text of the right form is what a document puts in place of a credential.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    let mut seen = [false; 256];
    let distinct = text.iter().filter(|byte| !std::mem::replace(&mut seen[**byte as usize], true));
    if distinct.count() < 6 {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    PLACEHOLDERS
        .iter()
        .any(|word| lower.windows(word.len()).any(|window| window == word.as_bytes()))
}

/// True if the text mixes letters and digits as random ones do.
pub(super) fn is_random(text: &[u8]) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let lower = text.iter().filter(|byte| byte.is_ascii_lowercase()).count();
    let upper = text.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let mixed = digits >= 1 && lower >= 2 && upper >= 2;
    (mixed || digits >= 4 && lower + upper >= 2) && !is_placeholder(text)
}
