// AMQP 1.0 with rhea: each line is a check, ok or FAIL with what came instead.
const rhea = require("rhea");

const port = Number(process.argv[2]);
const MAX_STEP_MS = 20000;
let failed = 0;

function check(name, good, came) {
  console.log(`${good ? "ok  " : "FAIL"}  rhea: ${name}` + (good ? "" : `: ${JSON.stringify(came)}`));
  if (!good) failed += 1;
}

function connect(id) {
  return rhea.create_container({ id }).connect({ port, host: "127.0.0.1", reconnect: false });
}

function once(from, event) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no ${event} came`)), MAX_STEP_MS);
    from.once(event, (context) => {
      clearTimeout(late);
      resolve(context);
    });
  });
}

async function bodies() {
  const connection = connect("rhea-bodies");
  const receiver = connection.open_receiver({ source: "r/+", credit_window: 10 });
  await once(receiver, "receiver_open");
  const sender = connection.open_sender("r/1");
  await once(sender, "sendable");
  const message = rhea.message;
  const sent = [
    "text", 5, true, { a: [1, "b"] }, message.data_section(Buffer.from([0, 255])),
    message.sequence_section([1, "two"]), rhea.types.wrap_ulong(7),
  ];
  for (const body of sent) {
    const came = once(receiver, "message");
    sender.send({
      body, message_id: rhea.string_to_uuid("00112233-4455-6677-8899-aabbccddeeff"),
      correlation_id: 9, application_properties: { k: "v" }, message_annotations: { "x-own": 1 },
    });
    const got = (await came).message;
    const plain = (it) => JSON.stringify(it && it.value !== undefined ? it.value : it);
    check(`body ${plain(body)} arrives`, got.body !== undefined, got);
    if (body && body.typecode) {
      check("and its kind", got.body.typecode === body.typecode, got.body);
    }
    check("with its ids, properties and annotations", got.correlation_id === 9 &&
      got.application_properties.k === "v" && got.message_annotations["x-own"] === 1, got);
  }
  const whole = once(receiver, "message");
  const large = "0123456789".repeat(100000);
  sender.send({ body: large });
  check("1 MB arrives whole", (await whole).message.body === large);
  connection.close();
  await once(connection, "connection_close");
}

async function outcomes() {
  const connection = connect("rhea-outcomes");
  const receiver = connection.open_receiver({ source: "o", credit_window: 0, autoaccept: false });
  await once(receiver, "receiver_open");
  const sender = connection.open_sender({ target: "o", rcv_settle_mode: 0 });
  await once(sender, "sendable");
  sender.send({ body: "one" });
  await once(sender, "accepted");
  const first = once(receiver, "message");
  receiver.add_credit(1);
  (await first).delivery.release({ delivery_failed: true });
  const second = once(receiver, "message");
  receiver.add_credit(1);
  const again = await second;
  check("what failed comes again and is counted", again.message.delivery_count === 1, again.message);
  again.delivery.accept();
  receiver.drain = true;
  const drained = once(receiver, "receiver_drained");
  receiver.add_credit(5);
  await drained;
  check("a link is drained", true);
  connection.close();
  await once(connection, "connection_close");
}

async function second() {
  const connection = connect("rhea-second");
  const receiver = connection.open_receiver({
    source: "e", rcv_settle_mode: 1, autosettle: false, credit_window: 5,
  });
  await once(receiver, "receiver_open");
  const sender = connection.open_sender({ target: "e", rcv_settle_mode: 1, autosettle: false });
  await once(sender, "sendable");
  const came = once(receiver, "message");
  const accepted = once(sender, "accepted");
  sender.send({ body: "exactly" });
  const taken = await accepted;
  check("a sender that settles second hears the outcome first", !taken.delivery.remote_settled);
  taken.delivery.update(true);
  const got = await came;
  const settled = once(receiver, "settled");
  got.delivery.update(false, rhea.message.accepted().described());
  await settled;
  check("a receiver that settles second sees the sender settle", got.message.body === "exactly");
  connection.close();
  await once(connection, "connection_close");
}

async function refusals() {
  const connection = connect("rhea-refusals");
  const sender = connection.open_sender("a/#");
  const error = once(sender, "sender_error");
  await error;
  check("a wildcard is refused", sender.error.condition === "amqp:invalid-field", sender.error);
  const receiver = connection.open_receiver({ source: { address: "a", filter: rhea.filter.selector("n >") } });
  await once(receiver, "receiver_error");
  check("a selector that is none is refused", receiver.error.condition === "amqp:invalid-field",
    receiver.error);
  const relay = connection.open_sender({ target: {} });
  await once(relay, "sendable");
  const rejected = once(relay, "rejected");
  relay.send({ to: "$SYS/x", body: "x" });
  const why = (await rejected).delivery.remote_state.error;
  check("a message for the broker's own topics is rejected",
    why.condition === "amqp:unauthorized-access", why);
  connection.close();
  await once(connection, "connection_close");
}

(async () => {
  for (const step of [bodies, outcomes, second, refusals]) {
    try {
      await step();
    } catch (error) {
      check(step.name, false, String(error));
    }
  }
  process.exit(failed > 0 ? 1 : 0);
})();
