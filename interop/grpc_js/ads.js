// gRPC for Node, in both roles: streams of xDS by TLS, whose messages are bytes to it.
//
// It is controlled by JSON objects on its standard input, one a line, each answered by one line:
//
//   {"do": "open", "address", "ca", "certificate", "key", "request"}   opens a stream and sends a request (base64): its number
//   {"do": "told", "stream"}                              how many messages came on it, and how it ended
//   {"do": "serve", "ca", "certificate", "key", "response"}   serves, to who shows a certificate: the port
//   {"do": "asked"}                                       how many streams were opened there
//
// Files are read when they are named. It says {"ready": true} first and leaves when its input ends.

const fs = require("node:fs");
const readline = require("node:readline");
const grpc = require("@grpc/grpc-js");

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const same = (bytes) => bytes;
const streams = [];
let asked = 0;

const commands = {
  open({ address, ca, certificate, key, request }) {
    const [own, secret] = certificate ? [fs.readFileSync(certificate), fs.readFileSync(key)] : [null, null];
    const credentials = grpc.credentials.createSsl(fs.readFileSync(ca), secret, own);
    // Channels share connections otherwise.
    const client = new grpc.Client(address, credentials, { "grpc.use_local_subchannel_pool": 1 });
    const call = client.makeBidiStreamRequest(METHOD, same, same);
    const told = { messages: 0, ended: null };
    call.on("data", () => { told.messages += 1; });
    call.on("error", () => {});
    call.on("status", ({ code, details }) => { told.ended = `${grpc.status[code]} ${details}`; });
    call.write(Buffer.from(request, "base64"));
    return streams.push(told) - 1;
  },

  told: ({ stream }) => streams[stream],

  serve({ ca, certificate, key, response }) {
    const server = new grpc.Server();
    const method = { path: METHOD, requestStream: true, responseStream: true };
    const bytes = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
    const answer = (call) => {
      asked += 1;
      call.once("data", () => call.write(Buffer.from(response, "base64")));
      call.on("end", () => call.end());
      call.on("error", () => {});
    };
    server.addService({ ads: { ...method, ...bytes } }, { ads: answer });
    const pair = { private_key: fs.readFileSync(key), cert_chain: fs.readFileSync(certificate) };
    const credentials = grpc.ServerCredentials.createSsl(fs.readFileSync(ca), [pair], true);
    return new Promise((bound, failed) => {
      server.bindAsync("127.0.0.1:0", credentials, (error, port) => (error ? failed(error) : bound(port)));
    });
  },

  asked: () => asked,
};

async function main() {
  console.log(JSON.stringify({ ready: true }));
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    try {
      console.log(JSON.stringify({ result: await commands[command.do](command) }));
    } catch (error) {
      console.log(JSON.stringify({ error: String(error) }));
    }
  }
  process.exit();
}

main();
