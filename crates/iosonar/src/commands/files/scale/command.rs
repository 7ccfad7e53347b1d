//! The shell command of an instance.

/// The command with the directory and the number of an instance, quoted as its place needs it.
pub fn of_instance(command: &str, root: &str, instance: u32) -> String {
    let mut text = String::new();
    // The quote that is open.
    let mut open = None;
    let mut rest = command;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("{root}") {
            text += &quoted(root, open);
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("{instance}") {
            text += &instance.to_string();
            rest = after;
            continue;
        }
        text.push(next);
        rest = &rest[next.len_utf8()..];
        match (next, open) {
            ('\\', None | Some('"')) => {
                if let Some(escaped) = rest.chars().next().filter(|escaped| *escaped != '{') {
                    text.push(escaped);
                    rest = &rest[escaped.len_utf8()..];
                }
            }
            ('\'' | '"', None) => open = Some(next),
            (quote, Some(opened)) if quote == opened => open = None,
            _ => {}
        }
    }
    text
}

fn quoted(path: &str, open: Option<char>) -> String {
    match open {
        None => crate::fio::quoted(path),
        Some('\'') => path.replace('\'', r"'\''"),
        Some(_) => path.chars().flat_map(|c| r#"\"$`"#.contains(c).then_some('\\').into_iter().chain([c])).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_shell_gets_any_root_as_one_word() {
        for root in ["/mnt/a", "/mnt/my root", "/r{instance}", "/it's $HOME \"`x`\\ *"] {
            for command in
                ["printf %s {root}/x{instance}", "printf %s \"{root}/x{instance}\"", "printf %s '{root}/x{instance}'"]
            {
                let output = Command::new("sh").args(["-c", &of_instance(command, root, 7)]).output().unwrap();
                assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{root}/x7"), "{command}");
            }
        }
    }
}
