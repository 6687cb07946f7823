//! Decisions on tools of MCP servers, and on the files that go with them.

use super::*;

#[test]
fn a_rule_may_name_all_tools_of_a_server_and_nothing_else_with_a_star() {
    let effect = |rules: &[Written], tool: &str, mode| {
        let request = Request { tool, class: ToolClass::Remote, subjects: &[], mode };
        policy(rules).decide(&request, &resolve).effect
    };
    let find = "mcp__lab__find";
    for mode in [Mode::Default, Mode::Auto] {
        assert_eq!(effect(&[], find, mode), Ask);
        assert_eq!(effect(&[(Allow, find, "")], find, mode), Allow);
        assert_eq!(effect(&[(Allow, "mcp__lab__*", "")], find, mode), Allow);
        assert_eq!(effect(&[(Allow, "mcp__laboratory__*", "")], find, mode), Ask);
        assert_eq!(effect(&[(Allow, "mcp__lab__*", ""), (Deny, find, "")], find, mode), Deny);
    }
    assert_eq!(effect(&[], find, Mode::Bypass), Allow);
    assert_eq!(effect(&[(Allow, "*", "")], find, Mode::Plan), Deny);
    let (policy, class) =
        (policy(&[(Deny, "mcp__lab__*", ""), (Deny, "ba*", "")]), ToolClass::Remote);
    assert!(policy.denies_tool(find, class, Mode::Bypass));
    assert!(!policy.denies_tool("mcp__other__find", class, Mode::Bypass));
    assert!(!policy.denies_tool("bash", ToolClass::Executes, Mode::Bypass));
}

#[test]
fn results_kept_for_reading_are_read_freely_and_the_servers_of_a_project_changed_only_by_a_person()
{
    let policy = policy(&[]).showing(PathBuf::from("/data/mcp/results"));
    let judged = |tool, class, access, path: &str, mode| {
        let subjects = [Subject::Path { access, path: PathBuf::from(path) }];
        policy.decide(&Request { tool, class, subjects: &subjects, mode }, &resolve).effect
    };
    let read = |path: &str| judged("read", ToolClass::Reads, PathAccess::Read, path, Mode::Default);
    assert_eq!(read("/data/mcp/results/one.txt"), Allow);
    assert_eq!(read("/data/mcp/seen.json"), Ask);
    let write =
        |path: &str| judged("write", ToolClass::Writes, PathAccess::Write, path, Mode::Bypass);
    assert_eq!(write("/w/p/.mcp.json"), Ask);
    assert_eq!(write("/w/p/mcp.json"), Allow);
}
