//! The names that people gave to containers, from the files of their engines.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::metadata::Container;

/// Where Podman and CRI-O keep their containers.
const STORAGE: &str = "var/lib/containers/storage/overlay-containers";

/// The name of a container on the host with this root; `None` if its engine does not tell.
pub fn name_of(root: &Path, container: &Container) -> Option<String> {
    let id = &container.id;
    match container.engine.as_str() {
        "docker" => {
            let config = json(&root.join("var/lib/docker/containers").join(id).join("config.v2.json"))?;
            let name = config["Name"].as_str()?.trim_start_matches('/').to_owned();
            Some(name).filter(|name| !name.is_empty())
        }
        "podman" => {
            let all = json(&root.join(STORAGE).join("containers.json"))?;
            let own = all.as_array()?.iter().find(|one| one["id"] == **id)?;
            own["names"][0].as_str().map(str::to_owned)
        }
        "cri-o" => of_annotations(&json(&root.join(STORAGE).join(id).join("userdata/config.json"))?),
        _ => of_annotations(&json(&bundle_of_containerd(root, id)?.join("config.json"))?),
    }
}

/// containerd keeps the configuration of a running container below its namespace.
fn bundle_of_containerd(root: &Path, id: &str) -> Option<PathBuf> {
    let namespaces = fs::read_dir(root.join("run/containerd/io.containerd.runtime.v2.task")).ok()?;
    namespaces.flatten().map(|namespace| namespace.path().join(id)).find(|bundle| bundle.is_dir())
}

/// `POD/CONTAINER` of Kubernetes, or the name of nerdctl.
fn of_annotations(config: &Value) -> Option<String> {
    let one_of = |keys: [&str; 2]| keys.iter().find_map(|key| config["annotations"][key].as_str());
    let pod = one_of(["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"]);
    let container = one_of(["io.kubernetes.cri.container-name", "io.kubernetes.container.name"]);
    match (pod, container) {
        (Some(pod), Some(container)) => Some(format!("{pod}/{container}")),
        (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
        (None, None) => config["annotations"]["nerdctl/name"].as_str().map(str::to_owned),
    }
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_engines_files() {
        let host = tempfile::tempdir().unwrap();
        let id = "ab".repeat(32);
        let put = |path: String, text: String| {
            let path = host.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(format!("var/lib/docker/containers/{id}/config.v2.json"), r#"{"Name": "/web"}"#.into());
        put(format!("{STORAGE}/containers.json"), format!(r#"[{{"id": "x"}}, {{"id": "{id}", "names": ["mail"]}}]"#));
        let pod = r#"{"annotations": {"io.kubernetes.cri.sandbox-name": "shop-1",
            "io.kubernetes.cri.container-name": "db"}}"#;
        put(format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/config.json"), pod.into());
        let of = |engine: &str| {
            let container = Container { engine: engine.into(), id: id.clone(), ..Container::default() };
            name_of(host.path(), &container)
        };
        assert_eq!(of("docker").as_deref(), Some("web"));
        assert_eq!(of("podman").as_deref(), Some("mail"));
        assert_eq!(of("containerd").as_deref(), Some("shop-1/db"));
        assert_eq!(of("kubernetes").as_deref(), Some("shop-1/db"));
        assert_eq!(of("cri-o"), None);
    }
}
