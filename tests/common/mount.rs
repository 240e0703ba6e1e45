//! Runs programs and tests again where a file system is mounted for them alone.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The environment variable that names the mount point.
pub(crate) const AT: &str = "OFFCUT_MOUNT";

/// Runs this program again, with `arguments`, in its own mount namespace, after the shell commands
/// `mount`. Both find the mount point in [`AT`]. `None` if mounting is not allowed.
pub(crate) fn again_in_a_mount<A: AsRef<OsStr>>(mount: &str, arguments: &[A]) -> Option<Output> {
    let at = tempfile::tempdir().ok()?;
    // As root, and as any user if the system allows user namespaces.
    for unshare in [&["--mount"][..], &["--map-root-user", "--mount"]] {
        let inside = |script: &str| {
            let mut command = Command::new("unshare");
            command
                .args(unshare)
                .args(["sh", "-c", &format!("AT=\"${AT}\"; {script}")])
                .env(AT, at.path());
            command
        };
        // Tried first, so that a later failure is the program's.
        if inside(mount)
            .output()
            .is_ok_and(|output| output.status.success())
        {
            let mut again = inside(&format!("{{ {mount}; }} && exec \"$0\" \"$@\""));
            return again
                .arg(std::env::current_exe().ok()?)
                .args(arguments)
                .output()
                .ok();
        }
    }
    None
}

/// Runs the test called `test` again, as [`again_in_a_mount`] does. Returns the mount point in the
/// second run; in the first, `None` once that has ended or if mounting is not allowed.
#[allow(dead_code, reason = "programs use the rest")]
pub(crate) fn in_a_mount(test: &str, mount: &str) -> Option<PathBuf> {
    if let Some(at) = std::env::var_os(AT) {
        return Some(at.into());
    }
    match again_in_a_mount(mount, &["--exact", test, "--nocapture"]) {
        None => eprintln!("SKIPPED {test}: mounting is not allowed here"),
        Some(output) => {
            let text = [output.stdout, output.stderr]
                .map(|text| String::from_utf8_lossy(&text).into_owned())
                .concat();
            assert!(
                text.contains("running 1 test"),
                "no test of the name {test}:\n{text}"
            );
            assert!(output.status.success(), "inside the mount:\n{text}");
        }
    }
    None
}
