//! Recognises containers by the path of their control group. Each engine has its own; an ID has 64 hexadecimal digits.

use crate::model::metadata::Container;

/// Digits of an ID.
const ID_DIGITS: usize = 64;

/// Digits of an ID that stand for a name, as engines print it.
const SHORT_DIGITS: usize = 12;

/// Prefixes of IDs, and the engine that gives them.
const ENGINES: [(&str, &str); 4] =
    [("docker", "docker"), ("libpod", "podman"), ("cri-containerd", "containerd"), ("crio", "cri-o")];

/// The innermost container in a path; its name is the short form of its ID until a better one is known.
pub fn container_of(path: &str) -> Option<Container> {
    let components: Vec<&str> = path.split('/').filter(|component| !component.is_empty()).collect();
    let found = |at: usize| with_id(&components, at).or_else(|| with_name(&components, at));
    let (engine, id, name) = (0..components.len()).rev().find_map(found)?;
    Some(Container { name, id, engine, cgroup: path.to_owned() })
}

type Found = (String, String, String);

/// `docker-ID.scope`, or `ID` below `docker` or `kubepods`.
fn with_id(components: &[&str], at: usize) -> Option<Found> {
    let component = components[at].strip_suffix(".scope").unwrap_or(components[at]);
    let (prefix, id) = component.rsplit_once('-').unwrap_or(("", component));
    // The monitor of a container runs outside of it.
    if id.len() != ID_DIGITS || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) || prefix.ends_with("conmon") {
        return None;
    }
    let known = |name: &str| ENGINES.iter().find(|(prefix, _)| *prefix == name).map(|(_, engine)| *engine);
    let above = components[..at].last().copied().unwrap_or_default();
    let engine = match known(prefix).or_else(|| known(above)) {
        Some(engine) => engine,
        None if components[0].starts_with("kubepods") => "kubernetes",
        None => prefix,
    };
    Some((engine.to_owned(), id.to_owned(), id[..SHORT_DIGITS].to_owned()))
}

/// Engines that use the name itself: LXC and systemd-nspawn.
fn with_name(components: &[&str], at: usize) -> Option<Found> {
    let component = components[at];
    let of = |engine: &str, name: String| Some((engine.to_owned(), name.clone(), name));
    if let Some(name) = component.strip_prefix("lxc.payload.") {
        return of("lxc", name.to_owned());
    }
    if at > 0 && components[at - 1] == "lxc" {
        return of("lxc", component.to_owned());
    }
    let machine = component.strip_prefix("machine-").and_then(|rest| rest.strip_suffix(".scope"));
    let service = component.strip_prefix("systemd-nspawn@").and_then(|rest| rest.strip_suffix(".service"));
    // libvirt's virtual machines are machines as well.
    let name = machine.filter(|name| !name.starts_with("qemu")).or(service)?;
    of("systemd-nspawn", name.replace("\\x2d", "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_each_engine_are_recognised_by_their_path() {
        let id = "0123456789abcdef".repeat(4);
        for (path, engine, name) in [
            (format!("/docker/{id}"), "docker", "0123456789ab"),
            (format!("/system.slice/docker-{id}.scope"), "docker", "0123456789ab"),
            (format!("/machine.slice/libpod-{id}.scope/container"), "podman", "0123456789ab"),
            (format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"), "containerd", "0123456789ab"),
            (format!("/kubepods.slice/kubepods-pod1.slice/crio-{id}.scope"), "cri-o", "0123456789ab"),
            (format!("/kubepods/burstable/pod1/{id}"), "kubernetes", "0123456789ab"),
            ("/lxc.payload.web/init.scope".into(), "lxc", "web"),
            ("/lxc/web".into(), "lxc", "web"),
            ("/machine.slice/machine-my\\x2dweb.scope".into(), "systemd-nspawn", "my-web"),
            ("/machine.slice/systemd-nspawn@web.service/payload".into(), "systemd-nspawn", "web"),
        ] {
            let found = container_of(&path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!((found.engine.as_str(), found.name.as_str(), found.cgroup), (engine, name, path));
        }
    }

    #[test]
    fn services_monitors_and_virtual_machines_are_no_containers() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            "/",
            "/system.slice/docker.service",
            "/user.slice/user-1000.slice/session-2.scope",
            "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope",
            &format!("/machine.slice/libpod-conmon-{id}.scope"),
        ] {
            assert_eq!(container_of(path), None, "{path}");
        }
    }
}
