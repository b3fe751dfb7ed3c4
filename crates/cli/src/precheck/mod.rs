//! The pre-check of single operators: what needs no Python is done here, what does is handed over to it.

mod args;
mod python;

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Result;
use msprobe_precheck::final_compare::{FinalOutcome, final_compare};
use msprobe_precheck::generate::{self, Framework, FromResult, Propagation};
use msprobe_report::answer::Habit;
use msprobe_report::console::Console;

use self::args::PropagationName;
pub(crate) use self::args::{ApiPrecisionCompareArgs, OpGenerateArgs, PythonArgs};
pub(crate) use self::python::hand_over;
use crate::args::FrameworkName;
use crate::compare::spell_flags;
use crate::console::{Terminal, refuse};
use crate::output::print_answer;
use crate::{Exit, WithHint};

/// The answer to a command that runs operators, where no Python took it over.
pub(crate) fn in_python_only(args: &PythonArgs) -> anyhow::Error {
    let flags: Vec<String> = args.rest.iter().map(|flag| flag.to_string_lossy().into_owned()).collect();
    WithHint {
        message: "this command runs operators and needs Python".to_owned(),
        hint: format!("python -m msprobe -f pytorch run_ut {}", flags.join(" ")),
    }
    .into()
}

/// Writes flags of several letters behind one dash out.
pub(crate) fn spell_out(args: Vec<OsString>) -> Vec<OsString> {
    let compare = [("-npu", "--npu_csv_path"), ("-gpu", "--gpu_csv_path")];
    let args = spell_flags(args, &["api_precision_compare", "api-precision-compare"], &compare);
    spell_flags(args, &["op_generate", "op-generate"], &[("-api_info", "--api_info_file")])
}

pub(crate) fn api_precision_compare(args: &ApiPrecisionCompareArgs) -> Result<Exit> {
    let console = Terminal::default();
    let compared = final_compare(&args.npu, &args.gpu, &args.output, args.strict, &console);
    let FinalOutcome { answer, sections, .. } = match compared {
        Ok(outcome) => outcome,
        Err(error) => return Ok(refuse(&error, &console)),
    };
    print_answer(&answer, &sections)?;
    Ok(if args.fail_on_error {
        answer.status.exit()
    } else {
        answer.status.exit_by_habit(Habit::Precheck, true)
    })
}

pub(crate) fn op_generate(framework: Option<FrameworkName>, args: &OpGenerateArgs) -> Result<Exit> {
    let console = Terminal::default();
    let framework = match framework {
        Some(FrameworkName::Mindspore) => Framework::MindSpore,
        _ => Framework::PyTorch,
    };
    let written = match (&args.config, &args.from) {
        (Some(config), _) => generate::from_config(config, &args.output, framework, &console),
        (None, Some(table)) => {
            let Some(dump) = &args.api_info else {
                return Err(WithHint {
                    message: "--from needs the dump that was checked".to_owned(),
                    hint: "add -api_info dump.json, as it was given to run_ut".to_owned(),
                }
                .into());
            };
            let from = FromResult {
                table: table.clone(),
                api: args.api.clone().unwrap_or_default(),
                dump: dump.clone(),
                output: args.output.clone(),
                propagation: args.propagation.map(|propagation| match propagation {
                    PropagationName::Forward => Propagation::Forward,
                    PropagationName::Backward => Propagation::Backward,
                }),
                is_real: args.real_data,
            };
            generate::from_result(&from, framework, &console)
        }
        (None, None) => {
            return Err(WithHint {
                message: "op_generate needs a configuration or a result".to_owned(),
                hint: "give -i config.json, or --from DETAILS.csv --api NAME -api_info dump.json".to_owned(),
            }
            .into());
        }
    };
    let path = match written {
        Ok(path) => path,
        Err(error) => return Ok(refuse(&error, &console)),
    };
    console.info(&format!("what the script runs is in {}", path.with_extension("json").display()));
    writeln!(io::stdout().lock(), "{}", path.display())?;
    Ok(Exit::Ok)
}
