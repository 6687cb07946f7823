//! Decisions on hosts.

use super::*;

#[test]
fn hosts_that_are_not_public_take_a_rule_of_their_own() {
    let judged = |rules: &[Written], url: &str, mode| {
        let subjects = [Subject::Url { url: url.to_owned() }];
        let class = ToolClass::Network;
        let request = Request { tool: "fetch", class, subjects: &subjects, mode };
        let policy = policy(rules);
        (policy.decide(&request, &resolve).effect, policy.always(&request, &resolve))
    };
    let effect = |rules: &[_], url: &str, mode| judged(rules, url, mode).0;
    let (everything, one) = ([(Allow, "fetch", "")], [(Allow, "*", "host=10.0.0.7")]);
    for mode in [Mode::Default, Mode::Auto, Mode::Plan] {
        assert_eq!(effect(&everything, "https://docs.example/", mode), Allow);
        for url in ["http://169.254.169.254/", "http://0x7f.1/", "http://localhost./", "http://db/"]
        {
            assert_eq!(effect(&everything, url, mode), Ask, "{url}");
        }
        assert_eq!(effect(&one, "http://10.0.0.7:8080/x", mode), Allow);
        assert_eq!(effect(&one, "http://[::ffff:10.0.0.7]/", mode), Allow);
        assert_eq!(effect(&one, "http://10.0.0.8/", mode), Ask);
        assert_eq!(effect(&[], "https://docs.example/", mode), Ask);
    }
    assert_eq!(effect(&[], "http://127.0.0.1/", Mode::Bypass), Allow);
    let denied = [(Deny, "*", "host=127.0.0.1")];
    assert_eq!(effect(&denied, "http://[::ffff:127.0.0.1]/", Mode::Bypass), Deny);
    assert_eq!(effect(&denied, "http://2130706433/", Mode::Bypass), Deny);
    let wanted = Some(rule("fetch", "host=127.0.0.1"));
    assert_eq!(judged(&everything, "http://127.1/", Mode::Auto).1, wanted);
}
