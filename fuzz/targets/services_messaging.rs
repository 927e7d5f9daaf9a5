//! Any bytes as a message and as a receipt in each form: what is read is written and read again,
//! and a node takes or refuses it.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use services::messaging::machine::{Input, Machine, Output, Settings};
use services::messaging::{Form, Returning, Transfer};

fuzz_target!(|data: &[u8]| {
    let Some((which, data)) = data.split_first() else { return };
    let form = Form::ALL[usize::from(*which) % Form::ALL.len()];
    let mut machine = Machine::new(Settings::new("a", &["b", "c"]));
    let now = Duration::from_secs(1_773_468_000);
    let mut inputs = Vec::new();
    if let Ok(transfer) = Transfer::decode(form, data) {
        let bytes = transfer.encode(form).expect("what was read can be written");
        assert_eq!(Transfer::decode(form, &bytes).as_ref(), Ok(&transfer));
        inputs.push(Input::Transfer { token: 1, transfer });
    }
    if let Ok(returning) = Returning::decode(form, data) {
        let bytes = returning.encode(form).expect("what was read can be written");
        assert_eq!(Returning::decode(form, &bytes).as_ref(), Ok(&returning));
        inputs.push(Input::Receipt { token: 2, returning });
    }
    for input in inputs {
        machine.handle_input(now, input);
        while let Some(output) = machine.poll_output() {
            if let Output::Persist { ticket, .. } = output {
                machine.handle_input(now, Input::Persisted { ticket });
            }
        }
    }
});
