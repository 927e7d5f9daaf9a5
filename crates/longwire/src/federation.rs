//! `longwire federation`: profiles that nations agree on: checked, compared, signed, applied.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use brokerd::{Config, Error, federation as files};
use federation::{Options, Profile, Standing, configuration, differences, parse, sign};
use serde_json::{Value, json};

use crate::terminal::{BAD_USE, say, tell};

/// Largest configuration of a broker that is put before what the profile says, in bytes.
const MAX_BASE_BYTES: usize = 4 << 20;

/// Check, compare, sign and apply the profile of a federation.
///
/// A profile is a file in TOML that says what nations' brokers exchange: topics, flows from whom to
/// whom, rates, sizes, urgency, keys. Each partner signs it, each partner's broker applies it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire keygen nor-keys --name NOR
  longwire federation check profile.toml
  longwire federation sign profile.toml --key nor-keys/longwire.key
  longwire federation verify profile.toml
  longwire federation diff old.toml profile.toml
  longwire federation apply profile.toml --as NOR --key nor-keys/longwire.pub \
    --users users.txt > broker.toml
  longwire broker --config broker.toml")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Check(CheckArgs),
    Sign(SignArgs),
    Verify(VerifyArgs),
    Diff(DiffArgs),
    Apply(Box<ApplyArgs>),
}

/// Say what is wrong with a profile, one line a fault, or what it is.
#[derive(clap::Args)]
struct CheckArgs {
    /// The profile.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print an object.
    #[arg(long)]
    json: bool,
}

/// Sign a profile as the partner whose key it is; the signature is put at the end of the file.
#[derive(clap::Args)]
struct SignArgs {
    /// The profile.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The private key, as `longwire keygen` makes it.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Where the signed profile is written; the same file without it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print an object.
    #[arg(long)]
    json: bool,
}

/// Say who has signed a profile and who has not. The exit status is 1 if somebody has not.
#[derive(clap::Args)]
struct VerifyArgs {
    /// The profile.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A public key known from elsewhere, which is to be a partner's in the profile.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Keys that count no more besides those that the profile names: lines as in longwire.pub.
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Print an object.
    #[arg(long)]
    json: bool,
}

/// Say who gains and loses what by another version. The exit status is 1 if anything differs.
#[derive(clap::Args)]
struct DiffArgs {
    /// The profile that holds.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The one that is to hold.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Print an array of objects.
    #[arg(long)]
    json: bool,
}

/// Print the configuration of a partner's broker, which `longwire broker` starts with.
#[derive(clap::Args)]
struct ApplyArgs {
    /// The profile.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Whose broker it is for.
    #[arg(long = "as", value_name = "NATION")]
    own: String,
    /// Its own public key, which the profile is to have: the longwire.pub of `longwire keygen`.
    #[arg(long, value_name = "FILE", required_unless_present = "unsigned")]
    key: Option<PathBuf>,
    /// The broker's own configuration, which the profile's part is put behind: listeners, users.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mqtt", "users"])]
    base: Option<PathBuf>,
    /// Address for MQTT; this machine alone without it.
    #[arg(long, value_name = "ADDRESS")]
    mqtt: Option<String>,
    /// The file of users, with the partners whose brokers connect to this one.
    #[arg(long, value_name = "FILE")]
    users: Option<String>,
    /// Directory with a file NAME.password for each broker that this one connects to.
    #[arg(long, value_name = "DIR")]
    passwords: Option<String>,
    /// Keys that count no more besides those that the profile names: lines as in longwire.pub.
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Apply it although not all partners have signed it.
    #[arg(long)]
    unsigned: bool,
    /// Where the configuration is written; stdout without it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print an object, with the configuration as a text.
    #[arg(long)]
    json: bool,
}

/// Runs one of its commands.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let done = match args.what {
        What::Check(args) => check(&args),
        What::Sign(args) => sign_file(&args),
        What::Verify(args) => verify(&args),
        What::Diff(args) => diff(&args),
        What::Apply(args) => apply(&args),
    };
    match done {
        Ok((text, code)) => {
            say(&text)?;
            Ok(code)
        }
        Err(Error::Caller(what)) => {
            tell(&what);
            Ok(ExitCode::from(BAD_USE))
        }
        Err(error) => Err(error.into()),
    }
}

/// What is printed, and the exit status.
type Done = Result<(String, ExitCode), Error>;

fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn times(profile: &Profile) -> (String, String) {
    let text = |seconds: u64| format!("{} UTC", record::calendar::utc(seconds));
    (text(profile.valid_from_s), text(profile.valid_until_s))
}

fn check(args: &CheckArgs) -> Done {
    let text = files::read_profile_text(&args.file)?;
    let shown = args.file.display().to_string();
    let profile = match parse(&shown, &text) {
        Ok(profile) => profile,
        Err(faults) if args.json => {
            let all: Vec<Value> = faults
                .faults
                .iter()
                .map(|it| {
                    json!({
                        "line": it.line, "field": it.field, "what": it.what, "remedy": it.remedy,
                    })
                })
                .collect();
            let unlisted = faults.unlisted;
            let object = json!({
                "good": false, "file": shown, "faults": all, "unlisted": unlisted,
            });
            return Ok((line(&object), ExitCode::from(BAD_USE)));
        }
        Err(faults) => return Ok((format!("{faults}\n"), ExitCode::from(BAD_USE))),
    };
    let (from, until) = times(&profile);
    let digest = profile.digest();
    let names: Vec<&str> = profile.partners.iter().map(|partner| &*partner.name).collect();
    if args.json {
        let object = json!({
            "good": true, "file": shown, "name": profile.name, "version": profile.version,
            "valid_from": from, "valid_until": until, "partners": names,
            "flows": profile.flows.len(), "topic_ids": profile.topic_ids.len(),
            "sha256": digest,
        });
        return Ok((line(&object), ExitCode::SUCCESS));
    }
    let Profile { name, version, flows, topic_ids, .. } = &profile;
    let (flows, ids, names) = (flows.len(), topic_ids.len(), names.join(", "));
    let text = format!(
        "{name} version {version}: {flows} flows, {ids} topic ids of {names}\n\
         holds    {from} to {until}\nsha-256  {digest}\n"
    );
    Ok((text, ExitCode::SUCCESS))
}

fn sign_file(args: &SignArgs) -> Done {
    let profile = files::read_profile(&args.file)?;
    let text = files::read_profile_text(&args.file)?;
    let signer = files::read_signer(&args.key)?;
    let shown = args.file.display();
    let wrong = |what: String| Error::Caller(format!("{shown}: {what}"));
    let (signed, partner) = sign(&profile, &text, &signer).map_err(wrong)?;
    let out = args.out.as_deref().unwrap_or(&args.file);
    let profile = parse(&shown.to_string(), &signed).map_err(|faults| wrong(faults.to_string()))?;
    replace(out, &signed)?;
    let missing: Vec<&str> = profile
        .standing(&[])
        .into_iter()
        .filter(|(_, standing)| *standing != Standing::Signed)
        .map(|(partner, _)| &*partner.name)
        .collect();
    let out = out.display().to_string();
    if args.json {
        let object = json!({
            "file": out, "partner": &*partner, "key": signer.key().to_string(),
            "sha256": profile.digest(), "missing": missing,
        });
        return Ok((line(&object), ExitCode::SUCCESS));
    }
    let rest = match missing.as_slice() {
        [] => "all have signed".to_owned(),
        missing => format!("still to sign: {}", missing.join(", ")),
    };
    Ok((format!("signed as {partner} in {out}; {rest}\n"), ExitCode::SUCCESS))
}

/// Writes a file anew beside itself, so that it is never half there.
fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let beside = PathBuf::from(format!("{}.new", path.display()));
    let write = || {
        let mut file = fs::File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|error| Error::Caller(format!("cannot write {}: {error}", path.display())))
}

fn verify(args: &VerifyArgs) -> Done {
    let profile = files::read_profile(&args.file)?;
    let revoked = files::read_keys(args.revoked.as_deref())?;
    for key in files::read_keys(args.key.as_deref())? {
        if !profile.partners.iter().any(|partner| partner.key == key) {
            let shown = args.file.display();
            return Err(Error::Caller(format!("{shown}: {key} is the key of no partner in it")));
        }
    }
    let all = profile.standing(&revoked);
    let is_whole = all.iter().all(|(_, standing)| *standing == Standing::Signed);
    let code = if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if args.json {
        let partner = |(partner, standing): &(&federation::Partner, Standing)| {
            let key = partner.key.to_string();
            json!({ "partner": &*partner.name, "key": key, "standing": standing.name() })
        };
        let partners: Vec<Value> = all.iter().map(partner).collect();
        let object = json!({
            "name": profile.name, "version": profile.version, "sha256": profile.digest(),
            "signed_by_all": is_whole, "partners": partners,
        });
        return Ok((line(&object), code));
    }
    let mut text = format!("{} version {}\n", profile.name, profile.version);
    for (partner, standing) in &all {
        let _ = writeln!(text, "{:<10} {:<22} {}", partner.name, standing.name(), partner.key);
    }
    Ok((text, code))
}

fn diff(args: &DiffArgs) -> Done {
    let (old, new) = (files::read_profile(&args.old)?, files::read_profile(&args.new)?);
    let all = differences(&old, &new);
    let code = if all.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if args.json {
        let one = |it: &federation::Difference| {
            let (partner, flow) = (&it.partner, &it.flow);
            json!({ "kind": it.kind, "partner": partner, "flow": flow, "what": it.what })
        };
        return Ok((line(&Value::Array(all.iter().map(one).collect())), code));
    }
    let lines: Vec<String> = all.iter().map(|it| it.line() + "\n").collect();
    Ok((lines.concat(), code))
}

fn apply(args: &ApplyArgs) -> Done {
    let profile = files::read_profile(&args.file)?;
    let revoked = files::read_keys(args.revoked.as_deref())?;
    if profile.partner(&args.own).is_some() {
        let unsigned = args.unsigned;
        files::check_key(&profile, &args.own, args.key.as_deref(), unsigned, "--key")?;
    }
    if let (Err(what), false) = (profile.is_signed_by_all(&revoked), args.unsigned) {
        return Err(Error::Caller(format!("{what}: --unsigned applies it all the same")));
    }
    let base = args.base.as_deref().map(|path| files::read_text(path, MAX_BASE_BYTES));
    let options = Options {
        file: args.file.display().to_string(),
        key: args.key.as_ref().map(|path| path.display().to_string()),
        revoked: args.revoked.as_ref().map(|path| path.display().to_string()),
        unsigned: args.unsigned,
        passwords: args.passwords.clone(),
        mqtt: args.mqtt.clone(),
        users: args.users.clone(),
        base: base.transpose()?,
    };
    let Some(text) = configuration(&profile, &args.own, &options) else {
        let names: Vec<&str> = profile.partners.iter().map(|partner| &*partner.name).collect();
        let names = names.join(", ");
        let own = &args.own;
        return Err(Error::Caller(format!("--as {own} is no partner: they are {names}")));
    };
    // What is printed is what a broker starts with, or nothing is.
    brokerd::check(&Config::parse("what was to be printed", &text)?)?;
    if let Some(out) = &args.out {
        replace(out, &text)?;
    }
    let code = ExitCode::SUCCESS;
    if args.json {
        let object = json!({
            "as": args.own, "name": profile.name, "version": profile.version,
            "sha256": profile.digest(), "configuration": text,
        });
        return Ok((line(&object), code));
    }
    Ok((if args.out.is_some() { String::new() } else { text }, code))
}
