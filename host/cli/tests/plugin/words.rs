//! What the program says to those who are new to it.

use std::process::{Command, Output, Stdio};

fn pintle(args: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pintle"));
    program.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

#[track_caller]
fn said(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

#[test]
fn a_reader_that_has_seen_enough_ends_a_command_in_silence() {
    for args in [&["crd"][..], &["rbac", concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/memcached")]] {
        let mut child = pintle(args).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(said(&child.wait_with_output().unwrap(), 0), "", "{args:?}");
    }
}

#[test]
fn without_a_cluster_the_missing_file_and_the_way_on_are_named() {
    let mut why = pintle(&["why", "sr/a"]);
    why.env("KUBECONFIG", "/nope").env_remove("KUBERNETES_SERVICE_HOST");
    let told = said(&why.output().unwrap(), 1);
    let expected = "error: no cluster: KUBECONFIG names /nope, which is not there; set KUBECONFIG or run `pintle demo`\n";
    assert_eq!(told, expected);
}

#[test]
fn what_is_no_name_no_address_and_no_count_is_refused() {
    for (args, part) in [
        (&["rbac", "--name", "Bad Name", "."][..], "'Bad Name'"),
        (&["new", "Cache", "--chart", ".", "--repository", "foo"], "no address of a repository"),
        (&["operator", "--max-concurrent-reconciles", "0"], "--max-concurrent-reconciles"),
    ] {
        let told = said(&pintle(args).output().unwrap(), 2);
        assert!(told.contains(part), "{told}");
    }
    let level = said(&pintle(&["operator", "--log-level", "foo"]).output().unwrap(), 1);
    assert!(level.contains("--log-level: `foo` is no level"), "{level}");
}
