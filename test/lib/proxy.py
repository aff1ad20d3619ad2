"""A TCP proxy before a server's Unix-domain socket that does what networks do.

proxy.py PORT-FILE MODE-FILE SOCKET

Writes the port that it listens on into PORT-FILE. MODE-FILE says what it does, and is read a hundred times a second:

pass      forwards both ways
record D  forwards both ways; each connection that begins now leaves a file in directory D with a line for each message
          that the client has sent after the startup message. The file's name ends in .open while the connection lasts
delay MS  holds each answer of the server's back for so long, and the end of a connection as well
cut N     of the next N answers, forwards all but the last byte and closes both connections
stall     forwards nothing, takes connections and says nothing to anybody: a network that is gone
http      answers what it is sent as a web server does, and closes
half      answers with the first half of a message, and closes
"""

import asyncio
import os
import sys

PORT_FILE, MODE_FILE, SOCKET = sys.argv[1:]
mode = ["pass"]
cuts = 0
recorded = 0


class Recording:
    """What a client sends."""

    def __init__(self, directory):
        global recorded
        recorded += 1
        self.path = os.path.join(directory, f"{recorded:04}")
        self.bytes = bytearray()
        open(self.path + ".open", "w", encoding="ascii").close()

    def close(self):
        with open(self.path + ".open", "w", encoding="ascii") as file:
            file.writelines(line + "\n" for line in self.messages())
        os.rename(self.path + ".open", self.path)

    def messages(self):
        at, is_started = 0, False
        while at < len(self.bytes):
            # What comes before the session has no tag: requests for encryption, then protocol 3.0.
            tag = self.bytes[at : at + 1] if is_started else b""
            at += len(tag)
            length = int.from_bytes(self.bytes[at : at + 4], "big")
            body = bytes(self.bytes[at + 4 : at + length])
            at += length
            if is_started:
                yield f"{tag.decode('ascii')} {repr(body)[2:-1]}"
            elif body.startswith(b"\0\3\0\0"):
                is_started = True


async def follow():
    global mode, cuts
    seen = None
    while True:
        with open(MODE_FILE, encoding="ascii") as file:
            text = file.read()
        if text != seen and text.endswith("\n"):
            seen, mode = text, text.split()
            cuts = int(mode[1]) if mode[0] == "cut" else 0
        await asyncio.sleep(0.01)


async def stalled():
    while mode[0] == "stall":
        await asyncio.sleep(0.01)


async def pump(reader, writer, answers, close, recording=None):
    global cuts
    try:
        while data := await reader.read(65536):
            if recording:
                recording.bytes += data
            if answers and mode[0] == "delay":
                await asyncio.sleep(int(mode[1]) / 1000)
            await stalled()
            if answers and cuts > 0:
                cuts -= 1
                writer.write(data[:-1])
                await writer.drain()
                break
            writer.write(data)
            await writer.drain()
        if answers and mode[0] == "delay":
            await asyncio.sleep(int(mode[1]) / 1000)
        # Nobody hears of the end of a connection either.
        await stalled()
    except OSError:
        pass
    close()
    if recording:
        recording.close()


async def serve(reader, writer):
    try:
        await stalled()
        if mode[0] in ("http", "half"):
            await reader.read(1000)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" if mode[0] == "http" else b"R\0\0\0\x08\0\0")
            await writer.drain()
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_unix_connection(SOCKET)
    except OSError:
        writer.close()
        return

    def close():
        writer.close()
        far_writer.close()

    recording = Recording(mode[1]) if mode[0] == "record" else None
    await asyncio.gather(pump(reader, far_writer, False, close, recording), pump(far_reader, writer, True, close))


async def main():
    following = asyncio.create_task(follow())
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=200)
    with open(PORT_FILE + ".new", "w", encoding="ascii") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    os.rename(PORT_FILE + ".new", PORT_FILE)
    await following


asyncio.run(main())
