#!/usr/bin/env python3
"""A TCP proxy that breaks connections on demand: in the middle of a frame, all at once, or by letting them stand still.

Commands come as JSON lines on standard input, each is answered by one line on standard output; at the end of the input it ends.

    {"listen": NAME}                         {"name": NAME, "port": PORT}    a link that leads nowhere yet
    {"upstream": NAME, "port": PORT}         its new connections lead there
    {"cut": NAME, "share": 0.5, "seed": 1}   that share of its connections breaks off in the middle of what comes next
    {"drop": NAME}                           all its connections are reset now
    {"stall": NAME} {"flow": NAME}           nothing passes, nothing is closed; and on again
    {"count": true}                          how many connections were cut, dropped, are open
"""
import asyncio
import json
import random
import socket
import sys

MOST_WAITING = 1 << 20


class Side(asyncio.Protocol):
    """One end of a connection through the proxy."""

    def __init__(self, pair):
        self.pair, self.transport, self.other = pair, None, None

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.pair.link.is_stalled:
            transport.pause_reading()

    def data_received(self, data):
        self.pair.forward(self, data)

    def pause_writing(self):
        if self.other and self.other.transport:
            self.other.transport.pause_reading()

    def resume_writing(self):
        if self.other and self.other.transport and not self.pair.link.is_stalled:
            self.other.transport.resume_reading()

    def connection_lost(self, error):
        self.pair.ended(self)


class Pair:
    """A connection from a client, and the one to where its link leads."""

    def __init__(self, link):
        self.link, self.armed, self.waiting, self.is_over = link, None, [], False
        self.near, self.far = Side(self), Side(self)
        self.near.other, self.far.other = self.far, self.near
        link.pairs[self] = True

    async def connect(self):
        try:
            await asyncio.get_running_loop().create_connection(lambda: self.far, "127.0.0.1", self.link.port or 1)
        except OSError:
            return self.abort()
        if self.is_over:
            return self.far.transport.abort()
        for data in self.waiting:
            self.far.transport.write(data)
        self.waiting = []

    def forward(self, side, data):
        if self.armed == (side is self.near) and len(data) > 1:
            return self.cut(side, data)
        if side.other.transport is None:
            self.waiting.append(data)
            if sum(map(len, self.waiting)) > MOST_WAITING:
                self.abort()
        elif not side.other.transport.is_closing():
            side.other.transport.write(data)

    def cut(self, side, data):
        """The receiver gets half of a frame and then the end; the sender a reset."""
        self.link.cuts += 1
        if side.other.transport:
            side.other.transport.write(data[:len(data) // 2])
            side.other.transport.close()
        side.transport.abort()
        self.is_over = True
        self.link.pairs.pop(self, None)

    def abort(self):
        self.is_over = True
        self.link.pairs.pop(self, None)
        for side in (self.near, self.far):
            if side.transport:
                side.transport.abort()

    def ended(self, side):
        self.is_over = True
        self.link.pairs.pop(self, None)
        if side.other.transport:
            side.other.transport.close()


class Link:
    def __init__(self):
        # The pairs in the order in which they came.
        self.port, self.pairs, self.cuts, self.drops, self.is_stalled = None, {}, 0, 0, False

    def accept(self):
        pair = Pair(self)
        asyncio.get_running_loop().create_task(pair.connect())
        return pair.near

    def each(self, call):
        for pair in self.pairs:
            for side in (pair.near, pair.far):
                if side.transport and not side.transport.is_closing():
                    call(side.transport)


class Proxy:
    def __init__(self):
        self.links = {}

    async def do(self, command):
        loop = asyncio.get_running_loop()
        if "listen" in command:
            link = self.links[command["listen"]] = Link()
            server = await loop.create_server(link.accept, "127.0.0.1", 0, backlog=1024)
            return {"name": command["listen"], "port": server.sockets[0].getsockname()[1]}
        if "count" in command:
            return {name: {"cut": link.cuts, "dropped": link.drops, "open": len(link.pairs)} for name, link in self.links.items()}
        verb = next(verb for verb in ("upstream", "cut", "drop", "stall", "flow") if verb in command)
        link = self.links[command[verb]]
        if verb == "upstream":
            link.port = command["port"]
        elif verb == "cut":
            dice = random.Random(command["seed"])
            for pair in link.pairs:
                if dice.random() < command["share"]:
                    pair.armed = dice.random() < 0.5
        elif verb == "drop":
            link.drops += len(link.pairs)
            for pair in list(link.pairs):
                pair.abort()
        else:
            link.is_stalled = verb == "stall"
            link.each(lambda transport: transport.pause_reading() if link.is_stalled else transport.resume_reading())
        return {"done": verb}


async def main():
    proxy, loop = Proxy(), asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        print(json.dumps(await proxy.do(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
