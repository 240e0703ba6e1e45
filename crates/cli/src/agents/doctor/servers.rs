//! The MCP servers in an agent's settings.

use std::path::Path;
use std::process::{Command, Stdio};

use super::finding::Finding;
use crate::agents::install::{Installation, Scope};

/// Returns true if the program in front of a server starts. The settings of a project are not the
/// user's own, so what they name is only looked for.
fn starts(front: &[String], scope: &Scope) -> bool {
    let Some((program, arguments)) = front.split_first() else {
        return false;
    };
    if matches!(scope, Scope::Project(_)) {
        let named = front.last().map(Path::new);
        return named.is_some_and(|path| path.is_relative() || path.is_file());
    }
    let run = Command::new(program)
        .args(arguments)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    run.is_ok_and(|status| status.success())
}

/// Finds the MCP servers with Offcut in front. Nothing to say if none does.
pub(super) fn findings(installation: &Installation) -> Vec<Finding> {
    let agent = installation.agent;
    let servers = match installation.servers() {
        Ok(Some(servers)) if !servers.wrapped.is_empty() => servers,
        Ok(_) => return Vec::new(),
        Err(error) => {
            let advice = "change what it names, then try again";
            return vec![Finding::note(error.to_string(), advice)];
        }
    };
    let path = servers.path.display();
    let fronts = servers.wrapped.iter().zip(&servers.fronts);
    let (works, broken): (Vec<_>, Vec<_>) =
        fronts.partition(|(_, front)| starts(front, &installation.scope));
    let names = |servers: &[(&String, &Vec<String>)]| {
        let names: Vec<_> = servers.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    };
    let mut findings = Vec::new();
    if !works.is_empty() {
        findings.push(Finding::works(format!(
            "MCP servers with Offcut in front, in {path}: {}",
            names(&works)
        )));
    }
    if !broken.is_empty() {
        findings.push(Finding::problem(
            format!(
                "MCP servers that can't start, since the program in front of them in {path} does not: {}",
                names(&broken)
            ),
            format!("run `offcut install {agent} --mcp-servers` again; mend one that you put there yourself"),
        ));
    }
    if !servers.bare.is_empty() {
        findings.push(Finding::note(
            format!("MCP servers without Offcut: {}", servers.bare.join(", ")),
            format!("`offcut install {agent} --mcp-servers` puts it in front of them too"),
        ));
    }
    findings
}
