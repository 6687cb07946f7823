//! Which members of a combo are fit.

use super::*;
use crate::provider::{ModelOptions, Provider, ProviderConfig};

fn combo(members: &[&str]) -> Combo {
    Combo {
        name: "fast".to_owned(),
        members: members.iter().map(|name| (*name).to_owned()).collect(),
        retries: 1,
        needs: Vec::new(),
        min_context: None,
    }
}

/// `lab/small` sees little, `lab/big` sees pictures, of `lab/new` nothing is known.
fn find(name: &str) -> Result<Candidate, ErrorInfo> {
    let (window, said): (_, Option<&[ModelFeature]>) = match name {
        "lab/small" => (Some(8_192), None),
        "lab/big" => (Some(128_000), Some(&[ModelFeature::Tools, ModelFeature::Vision])),
        "lab/new" => (None, None),
        other => return Err(ErrorInfo::new(ErrorCode::Invalid, format!("There is no {other}."))),
    };
    let mut config = ProviderConfig::new("lab", ProviderKind::OpenaiChat);
    config.base_url = Some("http://127.0.0.1:1/v1".to_owned());
    let options = ModelOptions { context_tokens: window, ..ModelOptions::default() };
    let model = Provider::new(config).unwrap().model(&name["lab/".len()..], options);
    Ok(Candidate { model, features: features(ProviderKind::OpenaiChat, said, None) })
}

fn outcome(combo: &Combo) -> Vec<(String, Option<String>)> {
    let members = combo.resolve(find).members;
    members.into_iter().map(|(name, member)| (name, member.err())).collect()
}

fn names(route: &Route) -> Vec<&str> {
    route.members().map(Member::name).collect()
}

#[test]
fn members_keep_their_order_and_their_retries() {
    let route = combo(&["lab/big", "lab/small", "lab/new"]).resolve(find).route().unwrap();
    assert_eq!(route.name(), "combo/fast");
    assert_eq!(names(&route), ["lab/big", "lab/small", "lab/new"]);
    assert!(route.members().all(|member| member.retries == Some(1)));
    assert_eq!(route.info().name, "lab/big");
}

#[test]
fn what_is_not_known_of_a_member_does_not_count_for_it() {
    let all = ["lab/small", "lab/big", "lab/new"];
    let vision = Combo { needs: vec![ModelFeature::Vision], ..combo(&all) };
    let lacks = "it is not known to have vision; `features` in the model's settings says what it \
                 has";
    let lacks = || Some(lacks.to_owned());
    let given = |name: &str| name.to_owned();
    assert_eq!(
        outcome(&vision),
        [(given("lab/small"), lacks()), (given("lab/big"), None), (given("lab/new"), lacks())]
    );
    let wide = Combo { min_context: Some(32_768), ..combo(&all) };
    let reasons: Vec<Option<String>> = outcome(&wide).into_iter().map(|(_, why)| why).collect();
    assert_eq!(
        reasons,
        [
            Some("its window of 8192 tokens is smaller than 32768".to_owned()),
            None,
            Some(
                "its window is not known; set `context_tokens` in the model's settings".to_owned()
            ),
        ]
    );
    // Every model is offered tools.
    let tools = Combo { needs: vec![ModelFeature::Tools], ..combo(&all) };
    assert!(outcome(&tools).iter().all(|(_, why)| why.is_none()));
}

#[test]
fn a_combo_without_a_fit_member_says_why_of_each() {
    let strange = Combo {
        needs: vec![ModelFeature::Vision, ModelFeature::Reasoning],
        ..combo(&["lab/big", "other/x", "combo/fast", "other/x"])
    };
    let error = strange.resolve(find).route().err().unwrap();
    assert_eq!(error.code, ErrorCode::Invalid);
    assert_eq!(
        error.message,
        "No member of combo/fast can be used. lab/big: it is not known to have reasoning; \
         `features` in the model's settings says what it has; other/x: There is no other/x.; \
         combo/fast: a combo cannot be part of a combo; other/x: it is named twice."
    );
}

#[test]
fn what_a_wire_format_says_of_its_models() {
    use ModelFeature::{Reasoning, StructuredOutput, Tools, Vision};
    assert_eq!(features(ProviderKind::Anthropic, None, None), [Tools]);
    assert_eq!(
        features(ProviderKind::OpenaiResponses, None, Some(Effort::High)),
        [Tools, StructuredOutput, Reasoning]
    );
    assert_eq!(features(ProviderKind::OpenaiChat, Some(&[Vision]), Some(Effort::Low)), [Vision]);
}
