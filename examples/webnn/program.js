// WebNN's conversions in a browser, as a program for Castigate: it starts the browser that
// WEBNN_CHROMIUM names on page.html, and hands the questions of docs/protocol.md on to that page.
"use strict";

const { spawn } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { createServer } = require("node:http");
const { join } = require("node:path");

const SWITCHES = [
  "--headless=shell", "--no-sandbox", "--remote-debugging-pipe",
  "--enable-features=WebMachineLearningNeuralNetwork",
];

// Whether scales and zero points are constants of the graph, as in most models, and not inputs.
const HAS_CONSTANTS = process.argv[2] === "--constants";

function fail(message) {
  console.error(`webnn: ${message}`);
  process.exit(1);
}

/** Starts the browser on the page. */
function startBrowser(port) {
  const browser = process.env.WEBNN_CHROMIUM;
  if (!browser) fail("WEBNN_CHROMIUM is not set; set it to the path of a Chromium with WebNN");
  const address = `http://127.0.0.1:${port}/`;
  // The browser ends when the debugging pipe is closed, however this process ends.
  const stdio = ["ignore", "ignore", "inherit", "pipe", "pipe"];
  const started = spawn(browser, [...SWITCHES, address], { stdio });
  started.on("error", (error) => fail(`the browser does not start: ${error.message}`));
  started.on("exit", (code, signal) => fail(`the browser ended: ${signal ?? code}`));
}

/** The page, as a function that answers one question; and its greeting. */
async function openPage() {
  const page = readFileSync(join(__dirname, "page.html"));
  let settle;
  const next = () => new Promise((resolve) => { settle = resolve; });
  const server = createServer({ requestTimeout: 0 }, async (request, response) => {
    if (request.url === "/") return response.setHeader("content-type", "text/html").end(page);
    if (request.url !== "/exchange") return response.writeHead(404).end();
    const answer = JSON.parse(decodeURIComponent(request.headers.answer));
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    if (answer.failed) fail(`the page failed: ${answer.failed}`);
    return settle([answer, Buffer.concat(chunks), response]);
  });
  const first = next();
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  startBrowser(server.address().port);
  let [greeting, values, waiting] = await first;
  const ask = async (question, payload) => {
    const replied = next();
    waiting.writeHead(200, { question: JSON.stringify(question) }).end(payload);
    [question, values, waiting] = await replied;
    return [question, values];
  };
  return [ask, greeting];
}

const stdin = process.stdin[Symbol.asyncIterator]();
let held = Buffer.alloc(0);

/** The next bytes of stdin; null at its end. */
async function read(size) {
  const chunks = [held];
  for (let have = held.length; have < size; ) {
    const { value, done } = await stdin.next();
    if (done) return null;
    chunks.push(value);
    have += value.length;
  }
  const content = Buffer.concat(chunks);
  held = content.subarray(size);
  return content.subarray(0, size);
}

function write(start, answer, values) {
  const header = Buffer.from(JSON.stringify(answer));
  start.writeUInt32LE(header.length, 4);
  start.writeBigUInt64LE(BigInt(values.length), 8);
  return new Promise((resolve) => {
    process.stdout.write(Buffer.concat([start, header, values]), resolve);
  });
}

/** What the page needs to know of a question. */
function inShort({ ask, case: { document, source, target }, shape, first, count, tensors }) {
  const about = { document, source, target, shape: shape ?? [count], first, count };
  return { ask, ...about, tensors, hasConstants: HAS_CONSTANTS };
}

async function main() {
  const [askPage, greeting] = await openPage();
  for (let start; (start = await read(16)) !== null; ) {
    const question = JSON.parse(await read(start.readUInt32LE(4)));
    const payload = await read(Number(start.readBigUInt64LE(8)));
    let reply = [greeting, Buffer.alloc(0)];
    if (question.ask === "bye") reply = [{ answer: "bye" }, Buffer.alloc(0)];
    else if (question.ask !== "hello") reply = await askPage(inShort(question), payload);
    const [answer, values] = reply;
    await write(Buffer.from(start), { ...answer, number: question.number }, values);
    if (question.ask === "bye") break;
  }
  process.exit(0);
}

main().catch((error) => fail(error.stack));
