"""A program that answers all inputs but one correctly; on that one it does what its argument says.

Arguments that begin with ``hello-`` take effect in its answer to hello.
"""

import json
import os
import struct
import sys
import time

GUILTY = 0x95
HELLO = {
    "answer": "hello",
    "number": 1,
    "protocol": 1,
    "name": "hostile",
    "version": "1",
    "dtypes": ["int8", "int4", "uint8", "uint4"],
    "operations": ["cast", "sweep", "bitcast"],
    "memory": True,
}
NOISE = b"\x80 \x1b[31mnoise\n" * 4096
DEED = sys.argv[1]


def frame(header, payload=b""):
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<4sIQ", b"CST1", len(encoded), len(payload)) + encoded + payload


def send(content, pipe=1):
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def sleep():
    while True:
        time.sleep(600)


def drip(content):
    for place in range(len(content)):
        send(content[place : place + 1])
        time.sleep(0.2)
    sleep()


def chatter(blocks):
    for _ in range(blocks):
        send(NOISE * 16, 2)


def send_twice(content):
    send(content)
    send(content)


def send_in_turn(content):
    """Send the start of an answer, noise on stderr, and the rest."""
    send(content[:9])
    chatter(1)
    time.sleep(0.05)
    send(content[9:])


def shrink(content, question):
    """Try to shrink the shared memory that the answer should be in."""
    descriptor = MEMORY["descriptor"]
    try:
        os.ftruncate(descriptor, 0)
    except OSError as error:
        print(type(error).__name__, file=sys.stderr, flush=True)
    send(content)


def values(question, elements, **more):
    header = {"answer": "values", "number": question["number"], "shape": [len(elements)]}
    return frame(header | more, elements)


def shape(question, elements):
    return question.get("shape", [len(elements)])


def deeds(question, elements):
    """Return the action of each deed on the guilty input."""
    number, right = question["number"], shape(question, elements)
    good = values(question, elements, shape=right)
    return {
        "fewer-elements": lambda: send(values(question, elements[:-1], shape=right)),
        "more-elements": lambda: send(values(question, elements + b"\0", shape=right)),
        "another-shape": lambda: send(values(question, elements[:-1])),
        "negative-shape": lambda: send(values(question, elements, shape=[-1])),
        "endless-shape": lambda: send(values(question, elements, shape=[1 << 40, 1 << 40])),
        "rank-of-thousands": lambda: send(values(question, elements, shape=[1] * 5000)),
        "shape-of-truth": lambda: send(values(question, elements, shape=[True])),
        "huge-header": lambda: send(struct.pack("<4sIQ", b"CST1", 2**32 - 1, 0) + NOISE),
        "huge-payload": lambda: send(struct.pack("<4sIQ", b"CST1", 2, 2**64 - 1) + b"{}" + NOISE),
        "large-payload": lambda: send(struct.pack("<4sIQ", b"CST1", 2, 1 << 30) + b"{}" + NOISE),
        "no-json": lambda: send(frame(b"{")),
        "nan-json": lambda: send(frame(b'{"answer":NaN}')),
        "deep-json": lambda: send(frame(b"[" * 500_000)),
        "long-number": lambda: send(frame(b'{"number":' + b"9" * 9999 + b"}")),
        "key-twice": lambda: send(frame(b'{"answer":"values","number":%d,"number":1}' % number)),
        "a-list": lambda: send(frame(b"[]")),
        "a-surrogate": lambda: send(
            frame(b'{"answer":"error","number":%d,"text":"\xed\xa0\x80"}' % number)
        ),
        "unknown-answer": lambda: send(frame({"answer": "\x1b[31m" * 9, "number": number})),
        "unknown-member": lambda: send(values(question, elements, path="/etc/passwd")),
        "no-number": lambda: send(frame({"answer": "values", "shape": right}, elements)),
        "number-of-another-kind": lambda: send(values(question, elements, number=str(number))),
        "earlier-number": lambda: send(values(question, elements, shape=right, number=number - 1)),
        "later-number": lambda: send(values(question, elements, shape=right, number=number + 1)),
        "hello-again": lambda: send(frame(HELLO | {"number": number})),
        "bye-unasked": lambda: send(frame({"answer": "bye", "number": number})),
        "error-with-payload": lambda: send(
            frame({"answer": "error", "number": number, "text": ""}, elements)
        ),
        "memory-of-others": lambda: send(
            frame({"answer": "values", "number": number, "shape": right, "in_memory": True})
        ),
        "endless-reason": lambda: send(
            frame({"answer": "unsupported", "number": number, "reason": "x" * (2 << 20)})
        ),
        "long-reason": lambda: send(
            frame({"answer": "unsupported", "number": number, "reason": "x" * 50_000})
        ),
        "half-and-exit": lambda: (send(good[:-1]), os._exit(0)),
        "half-and-stay": lambda: (send(good[:-1]), os.close(1), sleep()),
        "start-and-exit": lambda: (send(good[:7]), os._exit(9)),
        "header-and-exit": lambda: (send(good[:30]), os._exit(0)),
        "exit": lambda: os._exit(7),
        "close": lambda: (os.close(1), sleep()),
        "print": lambda: send(b"0 inputs done\n" + good),
        "drip": lambda: drip(good),
        "silence": sleep,
        "on-stderr": lambda: (send(good, 2), sleep()),
        "flood-of-stderr": lambda: chatter(1 << 40),
        "flood-of-stdout": lambda: [send(NOISE) for _ in range(1 << 40)],
        "much-stderr": lambda: (chatter(100), send(good)),
        "twice": lambda: send_twice(good),
        "in-turn": lambda: send_in_turn(good),
        "shrink": lambda: shrink(good, question),
        "markup": lambda: send(
            frame({"answer": "error", "number": number, "text": "<script>\x1b[31m\n\0é</script>"})
        ),
    }


def hello_deeds():
    """Return the action of each deed in the answer to hello."""
    good = frame(HELLO)
    return {
        "hello-banner": lambda: send(b"Loading the driver\n" + good),
        "hello-exit": lambda: (print("no device", file=sys.stderr, flush=True), os._exit(3)),
        "hello-silence": sleep,
        "hello-drip": lambda: drip(good),
        "hello-huge": lambda: send(struct.pack("<4sIQ", b"CST1", 2**32 - 1, 2**64 - 1)),
        "hello-half": lambda: (send(good[:-1]), os._exit(0)),
        "hello-payload": lambda: send(frame(HELLO, b"x")),
        "hello-nameless": lambda: send(frame({k: v for k, v in HELLO.items() if k != "name"})),
        "hello-red": lambda: send(frame(HELLO | {"name": "\x1b[31mred\n"})),
        "hello-extra": lambda: send(frame(HELLO | {"exec": "rm"})),
        "hello-protocol": lambda: send(frame(HELLO | {"protocol": 2})),
        "hello-number": lambda: send(frame(HELLO | {"number": 2})),
        "hello-dtype": lambda: send(frame(HELLO | {"dtypes": ["float8_e4m3fn"]})),
        "hello-twice": lambda: send(frame(HELLO | {"dtypes": ["int8", "int4", "int8"]})),
        "hello-many": lambda: send(frame(HELLO | {"claims": ["onnx-cast"] * 10_000})),
        "hello-claim": lambda: send(frame(HELLO | {"claims": ["onnx-casts"]})),
        "hello-operation": lambda: send(frame(HELLO | {"operations": ["eval"]})),
        "hello-error": lambda: send(
            frame({"answer": "error", "number": 1, "text": "no licence\n<b>"})
        ),
        "hello-values": lambda: send(frame({"answer": "values", "number": 1, "shape": [0]})),
        "hello-flood": lambda: chatter(1 << 40),
    }


def inputs_and_answers(question, payload):
    """Return the elements that the question is about, and the right answers."""
    if question["ask"] == "sweep":
        payload = bytes(range(question["first"], question["first"] + question["count"]))
    return payload, bytes(byte & 15 for byte in payload)


def answer_bye(question):
    if DEED == "no-bye":
        sleep()
    send(frame({"answer": "bye", "number": question["number"]}))


MEMORY = None
while start := sys.stdin.buffer.read(16):
    _, length, size = struct.unpack("<4sIQ", start)
    question, content = json.loads(sys.stdin.buffer.read(length)), sys.stdin.buffer.read(size)
    if question["ask"] == "hello":
        MEMORY = question["memory"]
        hello_deeds().get(DEED, lambda: send(frame(HELLO)))()
        continue
    if question["ask"] == "bye":
        answer_bye(question)
        break
    inputs, answer = inputs_and_answers(question, content)
    if GUILTY in inputs and DEED != "no-bye":
        deeds(question, answer)[DEED]()
    else:
        send(values(question, answer, shape=shape(question, answer)))
