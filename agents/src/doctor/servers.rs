//! The MCP servers in an agent's settings.

use super::finding::Finding;
use crate::install::Installation;

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
    let mut findings = vec![Finding::works(format!(
        "MCP servers with Offcut in front, in {path}: {}",
        servers.wrapped.join(", ")
    ))];
    if !servers.bare.is_empty() {
        findings.push(Finding::note(
            format!("MCP servers without Offcut: {}", servers.bare.join(", ")),
            format!("`offcut install {agent} --mcp-servers` puts it in front of them too"),
        ));
    }
    if !servers.remote.is_empty() {
        findings.push(Finding::note(
            format!("MCP servers with a URL stay as they are: {}", servers.remote.join(", ")),
            "to put Offcut in front of one, run `offcut mcp --listen 127.0.0.1:7770 --url URL`, and name that address instead",
        ));
    }
    findings
}
