"""A server that speaks the protocol up to a state and then misbehaves, on a port of its own for each mode.

hostile.py PORTS MODE…

Listens for each mode, and writes a line "MODE PORT" of each into the file PORTS. The file PORTS.done has a byte for each,
which is 1 when the deed has begun. A mode is STATE:DEED. The state says to whom and in answer to what the deed is done;
everything else is answered as a server answers it.

tls         the request for TLS
startup     the startup message               starting   what comes between the authentication and the first command
auth        the startup message, in place of a request for authentication
password    the password that was asked for   scram      the exchange of SCRAM
examine     the question what the server is   fetch      FETCH, of a feeder's rows
parse       Parse                             execute    Execute, or a Query of the script
cancel      a request to cancel, while the statement is never answered
farewell    the message that ends the session
watch       the question of the connection that watches

A state with ".job" is that of the run's clients only: the caller, who came first, and the one that watches are served well.

flood X     the message of type X, again and again
length X N  the header of a message of type X and of length N, then a megabyte
huge X N    a message of type X of N bytes, in full; without N: of 1 GB
cut N       the right answer up to byte N, and the end of the connection; cut +: one byte more for each connection
slow        the right answer, one byte a second
mute        nothing               close    the end of the connection
garbage     a megabyte of noise   late     the right answer after 30 seconds
first X     a message of type X before the right answer
send NAME   what PAYLOADS has under this name; "…" is the right answer
"""

import asyncio
import base64
import hashlib
import hmac
import json
import mmap
import os
import random
import re
import socket
import struct
import sys

BLOCK = 1 << 16
PASSWORD = b"sesame"


def message(tag, body=b""):
    return tag.encode("latin-1") + struct.pack("!i", len(body) + 4) + body


def fields(*texts):
    return b"".join(text + b"\0" for text in texts) + b"\0"


def error(state="58000", text=b"no", severity=b"ERROR", *more):
    return message("E", fields(b"S" + severity, b"V" + severity, b"C" + state.encode(), b"M" + text, *more))


def description(*names, kind=25):
    body = struct.pack("!H", len(names))
    return message("T", body + b"".join(name + b"\0" + struct.pack("!ihihih", 0, 0, kind, -1, -1, 0) for name in names))


def row(*values):
    body = struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message("D", body)


def complete(tag=b"SELECT 1"):
    return message("C", tag + b"\0")


def ready(status="I"):
    return message("Z", status.encode())


def parameter(name, value):
    return message("S", name + b"\0" + value + b"\0")


def request(code, more=b""):
    return message("R", struct.pack("!i", code) + more)


def result(value, name=b"a", tag=b"SELECT 1"):
    return description(name) + row(value) + complete(tag)


SAMPLES = {
    "R": request(0), "S": parameter(b"TimeZone", b"UTC"), "N": message("N", fields(b"SNOTICE", b"C00000", b"Mwell")),
    "A": message("A", b"\0\0\0\1channel\0payload\0"), "E": error(), "C": complete(), "D": row(b"1"),
    "T": description(b"a"), "Z": ready(), "1": message("1"), "2": message("2"), "3": message("3"), "n": message("n"),
    "t": message("t", b"\0\0"), "s": message("s"), "I": message("I"), "K": message("K", b"\0\0\0\1\0\0\0\2"),
    "G": message("G", b"\0\0\0"), "H": message("H", b"\0\0\0"), "W": message("W", b"\0\0\0"),
    "v": message("v", b"\0\3\0\0\0\0\0\0"), "d": message("d", b"data"), "c": message("c"), "V": message("V", b"\0\0\0\0"),
    "?": message("?", b"what"),
    # Results without end, in the forms that a result has.
    "results": result(b"1"), "empty": description(b"a") + complete(b"SELECT 0"), "TD": description(b"a") + row(b"1"),
    "names": b"", "bytes": b"\0", "broad": row(*[b"x"] * 5000), "hollow": row(*[None] * 65535), "rowlets": message("D", b"\0\0"),
    "parameters": parameter(b"x" * 10000, b"y" * 19000), "notice": message("N", fields(b"SNOTICE", b"C00000", b"M" + b"x" * 90000)),
    "fields": message("E", fields(*[b"Mtext"] * 5000)), "version": parameter(b"server_version", b"9" * 29000),
    "fatal": error("57P01", b"bye", b"FATAL"),
}

PARAMETERS = b"".join(parameter(name, value) for name, value in [
    (b"server_version", b"15.9"), (b"client_encoding", b"UTF8"), (b"in_hot_standby", b"off"),
    (b"default_transaction_read_only", b"off"), (b"standard_conforming_strings", b"on"), (b"TimeZone", b"UTC")])


def describe(pid, **changed):
    return {
        "pid": pid, "version": "PostgreSQL 15.9 (hostile)", "version_num": 150009, "unreadable": None,
        "hides_standbys": False, "is_standby": False, "is_read_only": False, "has_fixtures": False,
        "search_path": '"$user", public', "statements": "public.pg_stat_statements", "settings": [{"name": "work_mem", "setting": "4MB", "source": "file"}],
    } | changed


def told(text):
    return result(text if isinstance(text, bytes) else text.encode())


NAMES = [f"a{number}".encode() for number in range(65535)]
BAD = b"\xff\xfe\xc0\x80\xed\xa0\x80"
ZERO = "\0"
PAYLOADS = {
    # Authentication out of order, and beyond measure.
    "continue": lambda c: request(11, b"r=x,s=AAAA,i=4096"), "final": lambda c: request(12, b"v=AAAA"),
    "sasl-ok": lambda c: request(10, b"SCRAM-SHA-256\0\0") + request(0) + ready(),
    "sasl-sasl": lambda c: request(10, b"SCRAM-SHA-256\0\0") * 2,
    "sasl-final": lambda c: request(10, b"SCRAM-SHA-256\0\0") + request(12, b"v=AAAA"),
    "sasl-password": lambda c: request(10, b"SCRAM-SHA-256\0\0") + request(3),
    "ok-ok": lambda c: request(0) * 2, "ok-password": lambda c: request(0) + request(3),
    "ready": lambda c: ready(), "key": lambda c: SAMPLES["K"], "parameters": lambda c: PARAMETERS,
    "sasl-none": lambda c: request(10, b"\0"), "sasl-unended": lambda c: request(10, b"SCRAM-SHA-256"),
    "sasl-many": lambda c: request(10, b"x\0" * 900 + b"\0"), "sasl-bad": lambda c: request(10, BAD + b"\0\0"),
    "passwords": lambda c: request(3) * 100_000, "short": lambda c: message("R", b"\0"), "md5-short": lambda c: request(5, b"x"),
    "number": lambda c: request(77), "gss": lambda c: request(7), "negative": lambda c: request(-1),
    "old": lambda c: b"EFATAL:  no room\n\0", "old-unended": lambda c: b"E" + b"x" * 100_000,
    "negotiate": lambda c: message("v", b"\0\3\0\0\xff\xff\xff\xff" + b"_pq_.x\0" * 1000),
    # Texts that are none.
    "bad-error": lambda c: error("58000", BAD), "bad-state": lambda c: message("E", fields(b"S" + BAD, b"C" + BAD, b"M" + BAD)) + ready(),
    "bad-fatal": lambda c: error("57P01", BAD, b"FATAL"), "bad-parameter": lambda c: parameter(BAD, BAD) + c.right,
    "bad-version": lambda c: parameter(b"server_version", BAD) + c.right,
    "bad-notice": lambda c: message("N", fields(b"M" + BAD)) + c.right,
    "bad-column": lambda c: description(BAD) + row(b"1") + complete() + ready(),
    "bad-value": lambda c: result(BAD) + ready(), "bad-tag": lambda c: description(b"a") + row(b"1") + complete(BAD) + ready(),
    "zero-value": lambda c: result(b"a\0b") + ready(), "zero-column": lambda c: description(b"") + row(b"1") + complete() + ready(),
    "unended-error": lambda c: message("E", b"Mtext"), "no-error": lambda c: message("E") + ready(),
    "all-fields": lambda c: error("58000", b"m" * 5000, b"ERROR", *[f.encode() + BAD * 2000 for f in "DHPpqWsdctnFLR"]) + ready(),
    "wide-error": lambda c: error("58000", "ä".encode() * 100_000, b"ERROR", b"D" + "€".encode() * 100_000) + ready(),
    # Results that are none.
    "columns": lambda c: description(*NAMES) + row(*[b"1"] * 65535) + complete() + ready(),
    "columns-lie": lambda c: message("T", b"\xff\xff") + message("D", b"\xff\xff") + complete() + ready(),
    "more-values": lambda c: description(b"a") + row(*[b"1"] * 65535) + complete() + ready(),
    "no-values": lambda c: description(*NAMES[:100]) + message("D", b"") + complete() + ready(),
    "beyond": lambda c: description(b"a") + message("D", b"\0\1\x7f\xff\xff\xff") + complete() + ready(),
    "negative-value": lambda c: description(b"a") + message("D", b"\0\1\x80\0\0\0x") + complete() + ready(),
    "no-description": lambda c: row(b"1") + complete() + ready(), "no-completion": lambda c: description(b"a") + row(b"1") + ready(),
    "descriptions": lambda c: description(b"a") * 100_000 + row(b"1") + complete() + ready(),
    "completions": lambda c: complete() * 100_000 + ready(), "readies": lambda c: c.right + ready() * 100_000,
    "tag": lambda c: description(b"a") + row(b"1") + complete(b"SELECT " + b"9" * 29000) + ready(),
    "untagged": lambda c: description(b"a") + row(b"1") + message("C") + ready(),
    "status": lambda c: description(b"a") + row(b"1") + complete() + message("Z", b"?"),
    "new-names": lambda c: description(*[f"v{c.number}_{n}_{c.asked}".encode() for n in range(1600)]) +
        row(*[b"x" * 100] * 1600) + complete() + ready(),
    "long-name": lambda c: description(b"n" * 1_000_000) + row(b"1") + complete() + ready(),
    "large-value": lambda c: result(b"x" * 6_000_000) + ready(), "large-rows": lambda c: description(b"a") + row(b"x" * 60_000) * 1000 +
        complete() + ready(),
    "rows": lambda c: description(b"a") + row(b"x" * 10) * 2_000_000 + complete() + ready(),
    # Descriptions that are none.
    "zero-version": lambda c: told(json.dumps(describe(c.pid, version=f"15{ZERO}9"))) + ready(),
    "zero-settings": lambda c: told(json.dumps(describe(c.pid, settings=[{"name": ZERO, "setting": f"x{ZERO}", "source": ZERO}],
        search_path=f"{ZERO}", unreadable=[ZERO]))) + ready(),
    "surrogate": lambda c: told(json.dumps(describe(c.pid, version="\ud800"))) + ready(),
    "no-json": lambda c: told(b"what") + ready(), "null": lambda c: description(b"a") + row(None) + complete() + ready(),
    "deep": lambda c: told(b"[" * 1_000_000) + ready(), "wrong-types": lambda c: told(json.dumps(describe("x", version=7))) + ready(),
    "long-version": lambda c: told(json.dumps(describe(c.pid, version="9" * 500_000))) + ready(),
    "many-settings": lambda c: told(json.dumps(describe(c.pid, settings=[{"name": f"n{n}", "setting": "s" * 40, "source": "x"}
        for n in range(10_000)]))) + ready(),
    "large-json": lambda c: told(json.dumps(describe(c.pid, version="9" * 5_000_000))) + ready(),
    "bad-json": lambda c: told(BAD + json.dumps(describe(c.pid)).encode()) + ready(),
    "zero-wait": lambda c: told(json.dumps({"counters": [1] * 40, "waits": {ZERO: 3, f"A{ZERO}:b": 2 ** 60}, "replication": None})) + ready(),
    "many-waits": lambda c: told(json.dumps({"counters": None, "replication": None,
        "waits": {f"a{random.random()}:{n}": 1 for n in range(2000)}})) + ready(),
    "large-answer": lambda c: told(json.dumps({"waits": {"x" * 20_000_000: 1}})) + ready(),
    # TLS.
    "S": lambda c: b"S", "SN": lambda c: b"SN", "N": lambda c: b"N", "X": lambda c: b"X",
    "tls-E": lambda c: error(), "S-garbage": lambda c: (b"S", os.urandom(1 << 20)), "S-plain": lambda c: (b"S", request(0) + ready()),
    "S-alert": lambda c: (b"S", b"\x15\x03\x03\0\x02\x01\0" * 100_000), "S-fatal": lambda c: (b"S", b"\x15\x03\x03\0\x02\x02\x28"),
    "S-record": lambda c: (b"S", b"\x16\x03\x03\x40\0" + b"\x02\xff\xff\xff" + b"x" * 16380 + (b"\x16\x03\x03\x40\0" + b"x" * 16384) * 2000),
    "S-change": lambda c: (b"S", b"\x14\x03\x03\0\x01\x01" * 100_000), "S-empty": lambda c: (b"S", b"\x16\x03\x03\0\0" * 100_000),
}


class Closed(Exception):
    pass


class Connection:
    def __init__(self, mode, reader, writer):
        self.mode, self.reader, self.writer = mode, reader, writer
        self.number = mode.connections = mode.connections + 1
        self.pid = 1000 + self.number
        self.right = b""
        self.asked = 0
        self.in_block = False
        self.is_watch = False
        self.canceled = asyncio.Event()

    async def send(self, data):
        # A part at a time, so that others get their turn.
        for at in range(0, len(data), BLOCK * 4):
            self.writer.write(data[at : at + BLOCK * 4])
            await self.writer.drain()

    async def answer(self, state, right):
        """Answers rightly, unless this is the mode's state."""
        self.right = right
        if not self.is_meant(state):
            await self.send(right)
            return
        await self.deed(right)

    def is_meant(self, state):
        of, _, who = self.mode.state.partition(".")
        if of != state or (who == "job" and (self.number == 1 or self.is_watch)):
            return False
        self.mode.begin()
        return True

    async def deed(self, right):
        what, *arguments = self.mode.deed.split()
        if what == "flood":
            block = SAMPLES[arguments[0]]
            block *= max(1, BLOCK // max(len(block), 1))
            while True:
                if arguments[0] == "names":
                    block = b"".join(result(b"x", name=os.urandom(8).hex().encode()) for _ in range(500))
                await self.send(block)
                await asyncio.sleep(0)
        elif what == "length":
            await self.send(arguments[0].encode() + struct.pack("!i", int(arguments[1])) + b"\0" * (1 << 20))
            await self.rest()
        elif what == "huge":
            left = int(arguments[1]) if len(arguments) > 1 else 1 << 30
            start = {"E": b"SERROR\0VERROR\0C58000\0M", "T": b"\0\1", "D": b"\0\1" + struct.pack("!i", left - 10)}
            start = start.get(arguments[0], b"")
            await self.send(arguments[0].encode() + struct.pack("!i", left) + start)
            left -= 4 + len(start)
            noise = b"x" * BLOCK
            while left > 2:
                part = noise[: min(left - 2, BLOCK)]
                await self.send(part)
                left -= len(part)
            await self.send(b"\0\0")
            await self.send(complete() + ready())
        elif what == "cut":
            end = self.number - 1 if arguments[0] == "+" else int(arguments[0])
            await self.send(right[:end])
            raise Closed
        elif what == "slow":
            for byte in right:
                await self.send(bytes([byte]))
                await asyncio.sleep(1)
        elif what == "late":
            await asyncio.sleep(30)
            await self.send(right)
        elif what == "mute":
            await self.rest()
        elif what == "close":
            raise Closed
        elif what == "garbage":
            await self.send(random.Random(7).randbytes(1 << 20))
            await self.rest()
        elif what == "first":
            await self.send(SAMPLES[arguments[0]] + right)
        else:
            payload = PAYLOADS[arguments[0]](self)
            if isinstance(payload, tuple):
                await self.send(payload[0])
                await asyncio.sleep(0.05)
                payload = payload[1]
            await self.send(payload)
            if arguments[-1] == "rest":
                await self.rest()

    async def rest(self):
        """Says nothing more, until the other side has gone."""
        while await self.reader.read(BLOCK):
            pass
        raise Closed

    async def first(self):
        """The first message, which has no tag."""
        while True:
            length = struct.unpack("!i", await self.reader.readexactly(4))[0]
            body = await self.reader.readexactly(length - 4)
            code = struct.unpack("!i", body[:4])[0]
            if code == 80877103:
                await self.answer("tls", b"N")
                if self.mode.state == "tls" and self.mode.deed != "send N":
                    await self.rest()
            elif code == 80877102:
                await self.answer("cancel", b"")
                self.mode.cancels += 1
                if self.mode.state != "cancel":
                    for other in self.mode.open:
                        other.canceled.set()
                raise Closed
            else:
                texts = body[4:].split(b"\0")
                self.is_watch = (b"search_path", b"pg_catalog") in zip(texts[::2], texts[1::2])
                return

    async def next(self):
        tag = await self.reader.readexactly(1)
        length = struct.unpack("!i", await self.reader.readexactly(4))[0]
        return tag, await self.reader.readexactly(length - 4)

    async def scram(self):
        deed = self.mode.deed
        self.mode.begin()
        await self.send(request(10, b"SCRAM-SHA-256\0\0"))
        _, body = await self.next()
        first = body[body.index(b"\0") + 5 :]
        bare = first[first.index(b"n=") :]
        nonce = re.search(rb"r=([^,]*)", bare).group(1)
        salt, rounds = b"saltsaltsaltsalt", 4096
        server = {
            "iterations": b"r=%s,s=%s,i=2147483648", "iterations-": b"r=%s,s=%s,i=-1", "iterations0": b"r=%s,s=%s,i=0",
            "iterations1": b"r=%s,s=%s,i=100001", "iterations9": b"r=%s,s=%s,i=99999999999999999999", "salt": b"r=%s,s=!!!%s,i=4096",
            "nonce": b"r=x%s,s=%s,i=4096", "same-nonce": b"r=%s,s=%s,i=4096", "error": b"e=%s%s", "order": b"s=%s,r=%s,i=4096",
            "long": b"r=%sxxx,s=%s,i=4096" + b"," + b"x" * 1900, "most": b"r=%s,s=%s,i=100000",
        }.get(deed, b"r=%s,s=%s,i=4096")
        if deed != "same-nonce":
            nonce += b"server"
        server = server % (nonce, base64.b64encode(salt))
        await self.send(request(11, BAD if deed == "bad" else server))
        if deed == "twice":
            await self.send(request(11, server))
        _, final = await self.next()
        salted = hashlib.pbkdf2_hmac("sha256", PASSWORD, salt, rounds)
        text = bare + b"," + server + b"," + final[: final.rindex(b",p=")]
        proof = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), text, "sha256")
        last = {"signature": b"v=" + base64.b64encode(b"x" * 32), "no-signature": b"v=", "final-error": b"e=other-error",
                "final-bad": BAD, "short-signature": b"v=AAAA"}.get(deed, b"v=" + base64.b64encode(proof))
        if deed != "unfinished":
            await self.send(request(12, last))
        await self.send(request(0))

    async def serve(self):
        await self.first()
        state = self.mode.state.partition(".")[0]
        if state == "scram":
            await self.scram()
        elif state == "password":
            await self.send(request(3))
            await self.next()
            await self.answer("password", request(0))
        else:
            await self.answer("startup" if state == "startup" else "auth", request(0))
        await self.answer("starting", PARAMETERS + message("K", struct.pack("!ii", self.pid, 7)) + ready())
        gathered, wanted = b"", None
        while True:
            tag, body = await self.next()
            self.asked += 1
            if tag == b"Q":
                await self.query(body[:-1].decode("utf-8", "replace"))
            elif tag == b"P":
                gathered, wanted = gathered + message("1"), "parse"
            elif tag == b"B":
                gathered += message("2")
            elif tag == b"D":
                gathered += description(b"a")
            elif tag == b"E":
                gathered, wanted = gathered + row(b"1") + complete(), "execute"
            elif tag == b"S":
                right, state, gathered, wanted = gathered + ready(self.status()), wanted, b"", None
                if state == "execute" and self.mode.state == "cancel":
                    self.mode.begin()
                    await self.canceled.wait()
                await self.answer(state, right)
            elif tag == b"X":
                await self.answer("farewell", b"")
                return

    def status(self):
        return "T" if self.in_block else "I"

    async def query(self, text):
        # What a target is, and its settings: one answer has both.
        if "pg_backend_pid" in text or "current_setting('search_path')" in text:
            await self.answer("examine", told(json.dumps(describe(self.pid))) + ready())
        elif "json_build_object" in text:
            await self.answer("watch", told('{"counters": [1, 2, 3, 4, 5, 6, 7, 8, 9], "waits": {"CPU": 1}}') + ready())
        elif text.startswith(("SAVEPOINT", "SET LOCAL plan", "EXPLAIN", "ROLLBACK TO", "DEALLOCATE")):
            await self.answer("explain", told('[{"Query Identifier": 7}]') + ready(self.status()))
        elif "pg_stat_statements" in text:
            await self.answer("counts", told("[[7, 1, 1, 1, 1, 0.5]]") + ready())
        elif text.startswith(("BEGIN", "ROLLBACK")):
            self.in_block = text.startswith("BEGIN")
            await self.answer("block", complete(text.split()[0].encode()) + ready(self.status()))
        elif text.startswith("DECLARE"):
            self.fetched = 0
            await self.answer("declare", complete(b"DECLARE CURSOR") + ready("T"))
        elif text.startswith("FETCH"):
            self.fetched += 1
            rows = row(b"1") * (2 if self.fetched == 1 else 0)
            await self.answer("fetch", description(b"f") + rows + complete(b"FETCH 2") + ready("T"))
        elif "set_config" in text:
            await self.answer("set", result(b"x") + ready(self.status()))
        else:
            await self.answer("execute", result(b"1") + ready(self.status()))


class Mode:
    """A mode and its port."""

    def __init__(self, name, begun, number):
        self.name, self.begun, self.index = name, begun, number
        state, _, self.deed = name.partition(":")
        # What is between "/" and "." says something to those who make the run.
        self.state = re.sub(r"/\w+", "", state)
        self.connections = self.cancels = 0
        self.open = set()

    def begin(self):
        self.begun[self.index] = 1

    async def serve(self, reader, writer):
        connection = Connection(self, reader, writer)
        self.open.add(connection)
        try:
            await connection.serve()
        except (Closed, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open.discard(connection)
            writer.close()

    async def listen(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=200, limit=BLOCK)
        for sock in server.sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server.sockets[0].getsockname()[1]


async def main(ports, names):
    with open(ports + ".done", "wb") as file:
        file.write(b"\0" * len(names))
    with open(ports + ".done", "r+b") as file:
        begun = mmap.mmap(file.fileno(), 0)
    modes = [Mode(name, begun, number) for number, name in enumerate(names)]
    with open(ports + ".new", "w", encoding="ascii") as file:
        for mode in modes:
            file.write(f"{mode.name}\t{await mode.listen()}\n")
    os.rename(ports + ".new", ports)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
