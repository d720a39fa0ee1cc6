// node vectors.mjs FILE      Exit code 1: wrong answers; 2: a damaged file.
import { existsSync, readFileSync } from "node:fs";
import { convert } from "./codec.mjs"; // Your function of bits: BigInts for 64 bits, else Numbers.
let path = process.argv[2], line = 1, next = 0n, asked = 0, wrong = 0, shown = 0, bad, text, row;
const need = (ok, why) => ok || process.exit((console.log(`${path}:${line}: damaged: ${why}`), 2));
function report(x, answer) {
  if (row[6] !== undefined && answer === row[6]) return;
  if (wrong++, bad++ || shown++ > 9) return; // Show the first input of each line.
  const [lo, , code, , mask, step] = row.map(BigInt), rise = (BigInt(x) - lo) * step;
  const hex = [x, answer, (code + rise) & mask].map((number) => number?.toString(16));
  console.log(`${path}:${line}: input %s: answer %s, allowed %s by %s`, ...hex, text);
}
function ask(x, end) {
  const [lo, , code, last, mask, step] = row;
  for (asked += Number(end - x) + 1; x <= end; x++) {
    const answer = answerTo(x), rest = small ? ((answer - Math.imul(x - lo, step)) & mask) >>> 0
      : (BigInt(answer) - (x - lo) * step) & mask;
    if (rest < code || rest > last || answer > ones || (small && !Number.isInteger(answer)))
      report(x, answer);
  }
}
const [head, ...texts] = existsSync(path) ? readFileSync(path, "latin1").split("\n") : [""];
let [, from, to, kind, lines] = /^vectors 1 .+ (\d+) .+ (\d+) (all|some) (\d+)$/.exec(head) ?? [];
need(from <= 64 && to <= 64 && texts.pop() === "", "missing, cut, or not a vector file");
const [top, ones] = [from, to].map((n) => 2n ** BigInt(n) - 1n), small = from <= 32 && to <= 32;
const answerTo = from > 32 || small ? convert : (x) => convert(Number(x));
for (text of texts) {
  if (line++, text[0] === "#") continue;
  need(/^[0-9a-f]+( [0-9a-f]+){2,6}$/.test(text), "not a data line");
  const numbers = text.split(" ").map((word) => BigInt("0x" + word));
  const [lo, hi, code, last = code, mask = ones, step = 0n] = numbers;
  need(lo <= hi && hi <= top && code <= last && (last | mask) <= ones, "a number out of range");
  need(kind === "all" ? lo === next : lo >= next, "a line is missing or out of order");
  [next, bad, lines] = [hi + 1n, 0, lines - 1];
  row = [lo, hi, code, last, mask, step & ones, ...numbers.slice(6)].map(small ? Number : BigInt);
  if (from <= 32 || hi - lo < 256n) ask(row[0], row[1]);
  else for (let p = 1n; p <= hi - lo; p *= 2n) ask(lo + p - 1n, lo + p), ask(hi - p, hi - p + 1n);
}
need(asked && lines === 0 && (kind === "some" || next > top), "lines are missing");
process.exitCode = wrong ? 1 : 0, console.log(`${path}: ${asked} answers, ${wrong} wrong`);
