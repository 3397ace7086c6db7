//! Settings from the command line, the environment and files.

use std::ffi::OsString;

use clap::{ArgMatches, Command, FromArgMatches, Parser, error::ErrorKind};

/// Reads a program's configuration from the command line and the environment. For every variable
/// `X`, `X_FILE` names a file with the value. An empty variable counts as unset, and the command
/// line precedes both. Exits with code 2, and reports all problems at once, if there are any.
pub fn parse<C: Parser>() -> C {
    let mut program = C::command();
    let matches = matches(&program);
    read(&mut program, &matches)
}

/// Returns the arguments of a program, with values of variables and files. Exits if there are
/// problems, as [`parse`] does.
pub fn matches(program: &Command) -> ArgMatches {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let mut asked = program.clone();
    for argument in program.get_arguments() {
        let (Some(long), Some(variable)) = (argument.get_long(), argument.get_env()) else {
            continue;
        };
        if std::env::var_os(variable).is_some_and(|value| value.is_empty()) {
            asked = asked.mut_arg(argument.get_id(), |argument| argument.env(None::<&str>));
        }
        let mut file_variable = variable.to_owned();
        file_variable.push("_FILE");
        let Some(file) = std::env::var_os(&file_variable) else { continue };
        if is_given(&arguments, long) {
            continue;
        }
        match std::fs::read_to_string(&file) {
            // First, because options after a command or after `--` do not belong to the program.
            Ok(value) => arguments.insert(1, format!("--{long}={}", value.trim_end()).into()),
            Err(error) => {
                let problem = format!("{}: {error}", file.display());
                program.clone().error(ErrorKind::Io, problem).exit()
            }
        }
    }
    asked.get_matches_from(arguments)
}

/// Whether an option is on the command line. Arguments after `--` are not options.
fn is_given(arguments: &[OsString], long: &str) -> bool {
    let options = arguments.iter().map(|given| given.to_string_lossy());
    options.take_while(|given| given != "--").any(|given| {
        given.strip_prefix("--").and_then(|option| option.split('=').next()) == Some(long)
    })
}

/// Returns options from the arguments of a program. Exits if they are not valid.
pub fn read<C: FromArgMatches>(program: &mut Command, matches: &ArgMatches) -> C {
    C::from_arg_matches(matches).unwrap_or_else(|error| error.format(program).exit())
}
