//! `cargo xtask sbom`: what the program is made of, as CycloneDX 1.5 in JSON (ECMA-424): the crates
//! that are linked into it on Linux, their versions, licences and checksums, and who needs whom.
//! Nothing in it is of the moment or of a machine: the same lock file makes the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

/// The package whose program ships.
const PROGRAM: &str = "longwire";
/// For which system: packages of others are not linked.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The document, with a line feed at its end.
pub(crate) fn run(root: &Path) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let metadata = serde_json::from_slice(&output.stdout).context("what cargo metadata says")?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    let bom = bom(&metadata, &lock.parse().context("Cargo.lock")?)?;
    Ok(serde_json::to_string_pretty(&bom)? + "\n")
}

/// A package as the document has it.
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Of the registry; those of the workspace have none.
    is_foreign: bool,
}

impl Package {
    /// What others refer to it by (package-url, type cargo).
    fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version.replace('+', "%2B"))
    }
}

fn text<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a str> {
    value[key].as_str().with_context(|| format!("cargo metadata has no text '{key}'"))
}

fn list<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("cargo metadata has no list '{key}'"))
}

fn bom(metadata: &Value, lock: &toml::Table) -> anyhow::Result<Value> {
    let mut packages = BTreeMap::new();
    for package in list(metadata, "packages")? {
        let read = Package {
            name: text(package, "name")?.to_owned(),
            version: text(package, "version")?.to_owned(),
            // A slash is an older way to write OR.
            license: package["license"].as_str().map(|licence| licence.replace('/', " OR ")),
            is_foreign: package["source"].is_string(),
        };
        packages.insert(text(package, "id")?, read);
    }
    let mut needs = BTreeMap::new();
    for node in list(&metadata["resolve"], "nodes")? {
        needs.insert(text(node, "id")?, linked(node)?);
    }
    let is_program = |package: &&Package| package.name == PROGRAM && !package.is_foreign;
    let program = packages.iter().find(|(_, package)| is_program(package));
    let (program, about) = program.with_context(|| format!("there is no package '{PROGRAM}'"))?;
    let all = reached(program, &needs);
    let checksums = checksums(lock);

    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for id in &all {
        let package = packages.get(id).with_context(|| format!("{id} is no package"))?;
        let on = needs.get(id).into_iter().flatten();
        let on: BTreeSet<_> = on.filter_map(|id| packages.get(id)).map(Package::purl).collect();
        let (purl, on) = (package.purl(), on.into_iter().collect::<Vec<_>>());
        dependencies.insert(purl.clone(), json!({ "ref": purl, "dependsOn": on }));
        if id != program {
            let sum = checksums.get(&(package.name.as_str(), package.version.as_str()));
            components.insert(package.purl(), component("library", package, sum.copied()));
        }
    }
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component("application", about, None) },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    }))
}

/// What of a package's dependencies goes into the program: those of builds and tests do not.
fn linked(node: &Value) -> anyhow::Result<Vec<&str>> {
    let mut all = Vec::new();
    for dependency in list(node, "deps")? {
        if list(dependency, "dep_kinds")?.iter().any(|kind| kind["kind"].is_null()) {
            all.push(text(dependency, "pkg")?);
        }
    }
    Ok(all)
}

fn reached<'a>(from: &'a str, needs: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let (mut all, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(id) = open.pop() {
        if all.insert(id) {
            open.extend(needs.get(id).into_iter().flatten());
        }
    }
    all
}

/// SHA-256 of the packages of the registry, by name and version.
fn checksums(lock: &toml::Table) -> BTreeMap<(&str, &str), &str> {
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let one = |package| {
        let of = |key| text_of(package, key);
        Some(((of("name")?, of("version")?), of("checksum")?))
    };
    packages.into_iter().flatten().filter_map(one).collect()
}

fn text_of<'a>(table: &'a toml::Value, key: &str) -> Option<&'a str> {
    table.get(key)?.as_str()
}

fn component(kind: &str, package: &Package, checksum: Option<&str>) -> Value {
    let purl = package.purl();
    let mut component = json!({
        "type": kind,
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
    });
    if let Some(licence) = &package.license {
        component["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    // What no registry has cannot be found by it.
    if package.is_foreign {
        component["purl"] = json!(purl);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(id: &str, name: &str, source: Option<&str>) -> Value {
        json!({
            "id": id, "name": name, "version": "1.0.0+x", "license": "MIT/Apache-2.0",
            "source": source,
        })
    }

    fn dependency(on: &str, kind: Option<&str>) -> Value {
        json!({ "pkg": on, "dep_kinds": [{ "kind": kind, "target": null }] })
    }

    #[test]
    fn what_is_linked_is_listed_and_what_builds_or_tests_is_not() {
        let registry = Some("registry+https://example.org");
        let metadata = json!({
            "packages": [
                package("z", "zlib", registry),
                package("p", "longwire", None),
                package("c", "cc", registry),
                package("t", "proptest", registry),
            ],
            "resolve": { "nodes": [
                { "id": "p", "deps": [dependency("z", None), dependency("t", Some("dev"))] },
                { "id": "z", "deps": [dependency("c", Some("build"))] },
                { "id": "c", "deps": [] },
                { "id": "t", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"zlib\"\nversion = \"1.0.0+x\"\nchecksum = \"ab\"\n";
        let bom = bom(&metadata, &lock.parse().unwrap()).unwrap();
        assert_eq!(
            bom["components"],
            json!([{
                "type": "library", "bom-ref": "pkg:cargo/zlib@1.0.0%2Bx", "name": "zlib",
                "version": "1.0.0+x", "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "hashes": [{ "alg": "SHA-256", "content": "ab" }],
                "purl": "pkg:cargo/zlib@1.0.0%2Bx",
            }])
        );
        let depends = json!(["pkg:cargo/zlib@1.0.0%2Bx"]);
        assert_eq!(bom["dependencies"][0]["dependsOn"], depends);
        assert_eq!(bom["dependencies"][1]["dependsOn"], json!([]));
        let empty = json!({ "packages": [], "resolve": { "nodes": [] } });
        assert!(super::bom(&empty, &toml::Table::new()).is_err());
    }

    #[test]
    fn the_program_of_this_tree_has_one_twice() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let one = run(root).unwrap();
        assert_eq!(one, run(root).unwrap());
        let bom: Value = serde_json::from_str(&one).unwrap();
        let components = bom["components"].as_array().unwrap();
        let named = |name: &str| components.iter().find(|component| component["name"] == name);
        // Linked, of the workspace, and neither.
        assert_eq!(named("rustls").unwrap()["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert!(named("longwire-proxy").unwrap().get("purl").is_none());
        assert!(named("proptest").is_none() && named("longwire-bench").is_none());
        // Each has a licence, and whoever is referred to is there.
        let own = [bom["metadata"]["component"].clone()];
        let all = components.iter().chain(&own);
        let refs: BTreeSet<_> = all.map(|one| one["bom-ref"].as_str().unwrap()).collect();
        for component in components {
            assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        }
        for dependency in bom["dependencies"].as_array().unwrap() {
            for on in dependency["dependsOn"].as_array().unwrap() {
                assert!(refs.contains(on.as_str().unwrap()), "{on}");
            }
        }
        assert!(!one.contains(&root.display().to_string()));
    }
}
