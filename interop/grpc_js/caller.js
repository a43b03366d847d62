// A client of gRPC for Node that calls a backend through xDS: `caller.js TARGET`, with the bootstrap in the environment.
//
// As `grpc_caller.py`: each line of standard input is a call; the line that answers it holds the backend's tag or the error.

const readline = require("node:readline");
const grpc = require("@grpc/grpc-js");

require("@grpc/grpc-js-xds").register();

const METHOD = "/interop.Backend/Who";
const same = (bytes) => bytes;
const client = new grpc.Client(process.argv[2], grpc.credentials.createInsecure());

function call(done) {
  const options = { deadline: Date.now() + 2000 };
  client.makeUnaryRequest(METHOD, same, same, Buffer.alloc(0), options, (error, tag) => {
    done(error ? { error: `${grpc.status[error.code]} ${error.details}` } : { result: tag.toString() });
  });
}

async function main() {
  console.log(JSON.stringify({ ready: true }));
  for await (const _ of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await new Promise(call)));
  }
  process.exit();
}

main();
